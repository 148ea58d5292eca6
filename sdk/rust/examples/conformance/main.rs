//! The conformance executor of the Rust SDK; see protocol/conformance.md.
//!
//!     callfan conformance --executor sdk/rust/target/debug/examples/conformance

mod journal;

use std::future::Future;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use callfan::{Call, Content, Effects, Error, Executor, Function, IntoOutput, OnUncertain, Part, RawText, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use journal::Journal;

static JOURNAL: LazyLock<Journal> = LazyLock::new(|| Journal::open(&variable("CONFORMANCE_LOG")).expect("CONFORMANCE_LOG can be opened"));

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; callfan conformance sets it"))
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Retry {
    after_ms: u64,
    ok_at: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Pay {
    #[serde(default)]
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct VerifiedPay {
    verdict: String,
    #[serde(default)]
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Typed {
    count: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Large {
    bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Exit {
    unless: String,
}

/// A function that writes the event log.
fn logged<I, O, F>(name: &str, description: &str, effects: Effects, handler: fn(I, Call) -> F) -> Function
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    O: IntoOutput,
    F: Future<Output = Result<O, Error>> + Send + 'static,
{
    let logging = move |input: I, call: Call| async move {
        JOURNAL.write("start", &call);
        let result = handler(input, call.clone()).await;
        JOURNAL.write(if call.is_cancelled() { "cancelled" } else { "end" }, &call);
        result
    };
    Function::new(name, logging).description(description).effects(effects)
}

async fn echo(call: Call) -> Result<RawText, Error> {
    JOURNAL.write("start", &call);
    JOURNAL.write("end", &call);
    Ok(call.arguments().into())
}

async fn wait(ms: u64, call: &Call) -> Result<(), Error> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(ms)) => Ok(()),
        () = call.cancelled() => Err(Error::failure("cancelled")),
    }
}

async fn pay(ms: u64, call: Call) -> Result<&'static str, Error> {
    JOURNAL.write("effect", &call);
    wait(ms, &call).await?;
    Ok("paid")
}

async fn verify(input: VerifiedPay, call: Call) -> Result<Verdict, Error> {
    JOURNAL.write("verify", &call);
    match input.verdict.as_str() {
        "done" => Ok(Verdict::done("verified")),
        "not_done" => Ok(Verdict::not_done()),
        "cannot_tell" => Ok(Verdict::cannot_tell("no receipt")),
        _ => panic!("secret-detail"),
    }
}

/// Keeps its thread, one of the runtime's, busy without any cooperation.
async fn block(input: Wait, _: Call) -> Result<&'static str, Error> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(input.ms) {
        std::hint::spin_loop();
    }
    Ok("blocked")
}

async fn key(_: Nothing, call: Call) -> Result<Map<String, Value>, Error> {
    let deadline = call.deadline().duration_since(SystemTime::UNIX_EPOCH)?;
    let mut said = Map::from_iter([
        ("idempotency_key".to_owned(), json!(call.idempotency_key())),
        ("attempt".to_owned(), json!(call.attempt())),
        ("session_id".to_owned(), json!(call.key().session_id)),
        ("turn_id".to_owned(), json!(call.key().turn_id)),
        ("call_id".to_owned(), json!(call.key().call_id)),
        ("function".to_owned(), json!(call.function())),
        ("deadline_ms".to_owned(), json!(deadline.as_millis())),
    ]);
    if let Some(traceparent) = call.traceparent() {
        said.insert("traceparent".to_owned(), json!(traceparent));
    }
    Ok(said)
}

async fn object(_: Nothing, _: Call) -> Result<Value, Error> {
    Ok(json!({
        "name": "Žluťoučký kůň ☂",
        "nested": {"list": [1, 2.5, true, null, "<a>&"], "empty": {}},
        "integer": 9_007_199_254_740_991_u64,
        "text": "{\"quoted\":\"\\n\"}",
    }))
}

async fn exit(input: Exit, _: Call) -> Result<&'static str, Error> {
    if !Path::new(&input.unless).exists() {
        std::process::exit(3);
    }
    Ok("alive")
}

fn executor() -> Executor {
    use Effects::{Idempotent, None, SideEffects};

    let mut executor = Executor::new(variable("CONFORMANCE_POOL"))
        .concurrency(variable("EXECUTOR_CONCURRENCY").parse().expect("EXECUTOR_CONCURRENCY is a number"))
        .stop_timeout(Duration::from_millis(variable("EXECUTOR_STOP_TIMEOUT_MS").parse().expect("EXECUTOR_STOP_TIMEOUT_MS is a number")));
    if let Ok(prefix) = std::env::var("CONFORMANCE_INBOX_PREFIX") {
        executor = executor.inbox_prefix(prefix);
    }
    for name in ["echo", "sag mir, wo ☂.*>", &format!("a/{}", "n".repeat(300))] {
        let echo = Function::raw(name, json!({"type": "object"}), echo);
        executor = executor.function(echo.description("Returns its arguments.").effects(None));
    }
    executor
        .function(logged("fail", "Fails with a text.", None, |input: Text, _| async { Err::<(), _>(Error::failure(input.text)) }))
        .function(
            logged("retry", "Fails until an attempt.", Idempotent, |input: Retry, call| async move {
                if call.attempt() < input.ok_at {
                    return Err(Error::retry("not yet").after(Duration::from_millis(input.after_ms)));
                }
                Ok("ok")
            })
            .attempts(5),
        )
        .function(logged("sleep", "Waits.", Idempotent, |input: Wait, call| async move { wait(input.ms, &call).await.map(|()| "slept") }))
        .function(logged("key", "Says what it knows about its call.", Idempotent, key))
        .function(logged("pay_blind", "Pays.", SideEffects, |input: Pay, call| pay(input.ms, call)))
        .function(logged("pay_park", "Pays.", SideEffects, |input: Pay, call| pay(input.ms, call)).on_uncertain(OnUncertain::Park))
        .function(logged("pay", "Pays.", SideEffects, |input: VerifiedPay, call| pay(input.ms, call)).verify(verify))
        .function(logged("text", "Returns the text.", None, |input: Text, _| async { Ok(input.text) }))
        .function(logged("parts", "Returns content parts.", None, |_: Nothing, _| async {
            Ok(Content::new([Part::text("first"), Part::text("second ☂")]))
        }))
        .function(logged("object", "Returns an object.", None, object))
        .function(logged("nothing", "Returns nothing.", None, |_: Nothing, _| async { Ok(()) }))
        .function(logged("crash", "Crashes.", None, |_: Nothing, _| async { crash() }))
        .function(logged("typed", "Returns the number.", None, |input: Typed, _| async move { Ok(input.count.to_string()) }))
        .function(logged("large", "Returns a long text.", None, |input: Large, _| async move { Ok("x".repeat(input.bytes)) }))
        .function(logged("block", "Keeps a thread busy.", Idempotent, block))
        .function(
            logged("stuck", "Never returns.", None, |_: Nothing, _| async {
                tokio::time::sleep(Duration::from_secs(600)).await;
                Ok(())
            })
            .timeout(Duration::from_secs(1))
            .attempts(1),
        )
        .function(logged("exit", "Ends the process.", Idempotent, exit))
}

fn crash() -> Result<(), Error> {
    panic!("secret-detail")
}

fn main() {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let result = runtime.block_on(executor().run());
    if let Err(e) = result {
        eprintln!("{e}");
        std::process::exit(1);
    }
    std::process::exit(0); // also when a handler of stuck is still there
}
