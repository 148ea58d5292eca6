//! Functions as programs declare and test them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use callfan::testing::{Invocation, Outcome};
use callfan::{Call, Content, Effects, Error, Executor, Function, IntoOutput, OnUncertain, Part, RawText, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

type Any = Map<String, Value>;

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// the number of the order
    id: i64,
    note: Option<String>,
    address: Option<Address>,
}

#[derive(Deserialize, JsonSchema)]
struct Address {
    lines: Vec<String>,
}

#[derive(Serialize)]
struct Sum {
    of: i64,
    text: &'static str,
}

fn one(function: Function) -> Executor {
    Executor::new("test").function(function)
}

fn call(executor: &Executor) -> Invocation {
    Invocation::of(executor, "f")
}

/// What a handler comes to that returns that.
async fn returning<O: IntoOutput + Clone + Sync>(value: O) -> Outcome {
    let f = Function::new("f", move |_: Any, _| {
        let value = value.clone();
        async move { Ok(value) }
    });
    call(&one(f)).run().await
}

fn failure(error: &str, cause: &str) -> Outcome {
    serde_failure(error, Some(cause))
}

fn serde_failure(error: &str, cause: Option<&str>) -> Outcome {
    let f = |text: &str| text.to_owned();
    Outcome::Failure { error: f(error), cause: cause.map(f) }
}

#[tokio::test]
async fn outputs() {
    assert_eq!(returning("<é>\n").await, Outcome::Success(json!("<é>\n")));
    assert_eq!(returning(String::new()).await, Outcome::Success(json!("")));
    assert_eq!(returning(Some("text")).await, Outcome::Success(json!("text")));
    assert_eq!(returning(None::<String>).await, Outcome::Success(Value::Null));
    assert_eq!(returning(()).await, Outcome::Success(Value::Null));
    assert_eq!(returning(42).await, Outcome::Success(json!("42")));
    assert_eq!(returning(vec!["a"]).await, Outcome::Success(json!("[\"a\"]")));
    assert_eq!(returning(RawText::from(b"a\xff")).await, Outcome::Success(json!("a\u{fffd}")));
    let content = Content::new([Part::text("a"), Part::image("https://example.com/x.png")]);
    let parts = json!([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://example.com/x.png"}]);
    assert_eq!(returning(content).await, Outcome::Success(parts));
    assert_eq!(returning(Content::new([])).await, failure("the function's output has no content parts", "invalid_output"));
    let unwritable = HashMap::from([((1, 2), 3)]);
    assert_eq!(returning(unwritable).await, failure("the function's output cannot be written as JSON: key must be a string", "invalid_output"));
    let raw = Function::raw("f", json!({}), |call| async move { Ok(serde_json::from_slice::<Box<RawValue>>(call.arguments())?) });
    assert_eq!(call(&one(raw)).raw_arguments("{\"n\":1.0e400}").run().await.text(), "{\"n\":1.0e400}");
}

#[tokio::test]
async fn arguments() {
    let f = Function::new("f", |order: Order, _| async move {
        Ok(Sum { of: order.id, text: if order.note.is_some() || order.address.is_some_and(|a| a.lines.is_empty()) { "more" } else { "less" } })
    });
    let executor = one(f);
    let given = async |json: &str| call(&executor).raw_arguments(json).run().await;
    assert_eq!(given(r#"{"id":9007199254740993}"#).await.json::<Value>(), json!({"of": 9_007_199_254_740_993_i64, "text": "less"}));
    assert_eq!(given(r#"{"id":1,"note":"x","unknown":[]}"#).await.json::<Value>()["text"], "more");
    for (json, error) in [
        ("{}", "invalid arguments: missing field `id`"),
        (r#"{"id":"1"}"#, "invalid arguments: id: invalid type: string \"1\", expected i64"),
        (r#"{"id":1.5}"#, "invalid arguments: id: invalid type: floating point `1.5`, expected i64"),
        (r#"{"id":1,"address":{"lines":["a",2]}}"#, "invalid arguments: address.lines[1]: invalid type: integer `2`, expected a string"),
        ("[1,null,null]", "invalid arguments: want a JSON object"),
    ] {
        assert_eq!(given(json).await, failure(error, "invalid_arguments"), "{json}");
    }
    let deep = format!("{{\"id\":1,\"x\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    assert_eq!(given(&deep).await.json::<Value>()["text"], "less"); // nobody reads that member
    let any = one(Function::new("f", |_: Any, _| async { Ok(()) }));
    assert_eq!(call(&any).raw_arguments(deep).run().await, failure("invalid arguments: recursion limit exceeded", "invalid_arguments"));
}

#[test]
fn definitions() {
    let f = Function::new("f", |_: Order, _| async { Ok(()) }).description("Orders.").effects(Effects::None).timeout(Duration::from_secs(90));
    let definition = f.definition();
    assert_eq!(definition["description"], "Orders.");
    assert_eq!(definition["policy"], json!({"effects": "none", "timeout": "1m30s"}));
    let schema = &definition["parameters"];
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["id"])));
    assert_eq!(schema["properties"]["id"]["description"], "the number of the order");
    assert_eq!((schema.get("$schema"), schema.get("title"), schema.get("$defs")), (None, None, None));
    assert_eq!(Function::raw("f", json!({"type": "object"}), async |_| Ok(())).definition()["parameters"], json!({"type": "object"}));
}

#[test]
fn what_cannot_be_served() {
    let f = || Function::raw("f", json!({}), |_| async { Ok(()) });
    let check = |executor: Executor| executor.check().unwrap_err().to_string();
    assert_eq!(check(Executor::new("test")), "there is no function; add one by function()");
    assert_eq!(check(one(f()).function(f())), "there are two functions of the name \"f\"");
    assert_eq!(check(Executor::new("a.b").function(f())), "pool is \"a.b\"; name the deployment with 1 to 64 of A-Z a-z 0-9 _ -");
    assert_eq!(check(one(f()).concurrency(0)), "concurrency is 0; use a whole number from 1");
    assert_eq!(check(one(f().attempts(0))), "function \"f\": attempts is 0; use 1 to 1000");
    let number = Function::new("f", |_: i64, _| async { Ok(()) });
    assert_eq!(check(one(number)), "function \"f\": the parameters are no JSON Schema of an object; let the handler take a struct");
    let verify = f().on_uncertain(OnUncertain::Verify);
    assert_eq!(check(one(verify)), "function \"f\": on_uncertain is Verify, and there is no verify handler; give one by verify()");
    one(f()).check().unwrap();
}

#[tokio::test]
async fn errors() {
    #[derive(Debug)]
    struct NoSuchCustomer;
    impl std::fmt::Display for NoSuchCustomer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no such customer")
        }
    }
    impl std::error::Error for NoSuchCustomer {}

    let coming_to = async |make: fn() -> Error| call(&one(Function::new("f", move |_: Any, _| async move { Err::<(), _>(make()) }))).run().await;
    assert_eq!(coming_to(|| Error::failure("sold out").with_cause("stock")).await, failure("sold out", "stock"));
    assert_eq!(coming_to(|| NoSuchCustomer.into()).await, serde_failure("no such customer", None));
    assert_eq!(coming_to(|| Error::failure(" ")).await, serde_failure("the function failed without saying why", None));
    let retry = Outcome::Retry { reason: "HTTP 503".into(), after: Duration::from_secs(2) };
    assert_eq!(coming_to(|| Error::retry("HTTP 503").after(Duration::from_secs(2))).await, retry);
}

fn panicking() -> Result<(), Error> {
    panic!("secret-detail")
}

#[tokio::test]
async fn panics_are_caught() {
    let crashed = failure("function crashed", "panic");
    assert_eq!(call(&one(Function::new("f", |_: Any, _| async { panicking() }))).run().await, crashed);
    assert_eq!(call(&one(Function::blocking("f", |_: Any, _| panicking()))).run().await, crashed);
}

#[tokio::test]
async fn time_and_cancellation() {
    let ended = Arc::new(AtomicBool::new(false));
    let noting = Arc::clone(&ended);
    let waits = Function::new("f", move |_: Any, call: Call| {
        let noting = Arc::clone(&noting);
        async move {
            call.cancelled().await;
            noting.store(call.is_cancelled() && call.remaining() == Duration::ZERO, Ordering::Relaxed);
            Ok("late")
        }
    });
    let executor = one(waits.timeout(Duration::from_millis(20)));
    assert_eq!(call(&executor).run().await, failure("timed out after 20ms", "timeout"));
    assert!(ended.load(Ordering::Relaxed));
    let soon = SystemTime::now() + Duration::from_millis(10);
    let Outcome::Failure { error, cause } = call(&executor).deadline(soon).run().await else { panic!("no failure") };
    assert!(error.ends_with("at the call's deadline") && cause.as_deref() == Some("deadline"), "{error}");
    assert_eq!(call(&executor).timeout(Duration::from_secs(9)).cancel_after(Duration::from_millis(5)).run().await, Outcome::Nothing);
}

#[tokio::test]
async fn an_async_handler_that_ignores_its_cancellation_is_dropped() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let noting = Arc::clone(&dropped);
    let f = Function::new("f", move |_: Any, _| {
        let guard = Dropped(Arc::clone(&noting));
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok(())
        }
    });
    let began = Instant::now();
    assert_eq!(call(&one(f)).timeout(Duration::from_millis(10)).run().await, failure("timed out after 10ms", "timeout"));
    assert!(dropped.load(Ordering::Relaxed) && began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn what_a_handler_is_told() {
    let f = Function::blocking("f", |_: Any, call: Call| {
        Ok(format!("{} {} {:?} {}", call.function(), call.attempt(), call.traceparent(), call.uncertain()))
    });
    let executor = one(f);
    let said = call(&executor).attempt(3).traceparent("00-1-2-01").uncertain().on_uncertain(OnUncertain::Rerun).run().await;
    assert_eq!(said.text(), "f 3 Some(\"00-1-2-01\") true");
    let key = Function::raw("f", json!({}), |call| async move { Ok(call.idempotency_key().to_owned()) });
    let ids = callfan::CallKey { session_id: "sess_1".into(), turn_id: "turn_1".into(), call_id: "call_1".into() };
    assert_eq!(call(&one(key)).key(ids).run().await.text(), "call_CiacoAzU1ZHamdtTeF8qXM");
}

#[tokio::test]
async fn verdicts() {
    let verified = async |verdict: fn() -> Result<Verdict, Error>| {
        let f = Function::new("f", |_: Any, _| async { Ok("ran") }).verify(move |_: Any, _| async move { verdict() });
        call(&one(f)).uncertain().run().await
    };
    let uncertain = |reason: &str| Outcome::Uncertain { reason: reason.into() };
    assert_eq!(verified(|| Ok(Verdict::done("before"))).await, Outcome::Success(json!("before")));
    assert_eq!(verified(|| Ok(Verdict::not_done())).await, Outcome::Success(json!("ran")));
    assert_eq!(verified(|| Ok(Verdict::cannot_tell("ask the bank"))).await, uncertain("ask the bank"));
    assert_eq!(verified(|| Err(Error::failure("no way"))).await, uncertain("the verify handler failed: no way"));
    assert_eq!(verified(|| panicking().map(|()| Verdict::not_done())).await, uncertain("the verify handler failed"));
    let f = Function::new("f", |_: Any, _| async { Ok("ran") });
    let error = call(&one(f)).uncertain().run().await.error().to_owned();
    assert!(error.starts_with("the outcome of this call is unknown"), "{error}");
}
