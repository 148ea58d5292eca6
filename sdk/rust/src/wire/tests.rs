//! protocol/fixtures: what is read and written.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::calls::{Dispatch, decode, idempotency_key};
use super::names::{Names, deliveries_of, token};
use super::outcome::{Outcome, OutcomeMessage};
use super::pulls::{self, Action};
use super::requests::{self, Binding, Definition, ExecutorInfo, RegistrationReply, Standing};
use crate::fixtures::{bytes, each, json as json_of, text};
use crate::output::Output;
use crate::{Backoff, Call, CallKey, Content, Effects, Error, Executor, Function, IntoOutput, OnUncertain, Part, RawText, Verdict};

fn names() -> Names {
    Names::new("fn")
}

fn headers(case: &Value) -> HashMap<String, String> {
    let all = case["headers"].as_object().into_iter().flatten();
    all.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

fn call_of(case: &Value) -> Result<Dispatch, String> {
    decode(&names(), text(case, "subject"), &headers(case), &bytes(text(case, "payload"))).map_err(|e| e.0)
}

#[test]
fn tokens() {
    each("tokens.json", |c| assert_eq!(token(text(c, "name")), text(c, "token")));
}

#[test]
fn calls() {
    for index in ["calls.json", "calls-foreign.json"] {
        each(index, |c| {
            let d = call_of(c).unwrap();
            let mut got = json!({
                "session_id": d.key.session_id, "turn_id": d.key.turn_id, "call_id": d.key.call_id, "function": d.function,
                "attempt": d.attempt, "handover": d.handover, "nonce": d.nonce, "result_subject": d.result_subject,
                "idempotency_key": d.idempotency_key, "timeout_ms": d.timeout_ms, "deadline_ms": d.deadline_ms,
                "traceparent": d.traceparent, "uncertain": d.uncertain, "on_uncertain": d.on_uncertain.map(OnUncertain::wire),
            });
            got["arguments"] = c["expect"]["arguments"].clone();
            assert_eq!(got, c["expect"]);
            assert_eq!(d.arguments, bytes(text(&c["expect"], "arguments")));
            assert_eq!(idempotency_key(&d.key), d.idempotency_key);
        });
    }
}

#[test]
fn messages_that_are_no_call() {
    each("invalid-calls.json", |c| {
        call_of(c).unwrap_err();
    });
}

#[test]
fn arguments_that_are_not_utf8_do_not_make_a_message_no_call() {
    let subject = "fn.call.f";
    let headers = HashMap::from(
        [("Fn-Protocol", "1"), ("Fn-Attempt", "1"), ("Fn-Handover", "1"), ("Fn-Nonce", "n"), ("Fn-Result-Subject", "fn.result.f.p07")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let payload = Bytes::from_static(b"{\"session_id\":\"s\",\"turn_id\":\"t\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":{\"a\":\"\xff\"}}");
    assert_eq!(decode(&names(), subject, &headers, &payload).unwrap().arguments, &b"{\"a\":\"\xff\"}"[..]);
}

fn dispatch_of(call: &Value) -> Dispatch {
    let key = CallKey { session_id: text(call, "session_id").into(), turn_id: text(call, "turn_id").into(), call_id: text(call, "call_id").into() };
    Dispatch {
        idempotency_key: idempotency_key(&key),
        key,
        function: text(call, "function").into(),
        arguments: Bytes::from_static(b"{}"),
        attempt: call["attempt"].as_u64().unwrap(),
        handover: call["handover"].as_u64().unwrap(),
        nonce: text(call, "nonce").into(),
        result_subject: text(call, "result_subject").into(),
        timeout_ms: None,
        deadline_ms: None,
        traceparent: None,
        tracestate: None,
        uncertain: false,
        on_uncertain: None,
    }
}

fn output_of(input: &Value) -> Result<Output, Error> {
    if let Some(text) = input["text"].as_str() {
        return text.to_owned().into_output();
    }
    if let Some(file) = input["bytes"].as_str() {
        return RawText(bytes(file).to_vec()).into_output();
    }
    if let Some(units) = input["utf16"].as_array() {
        let units: Vec<u16> = units.iter().map(|unit| u16::try_from(unit.as_u64().unwrap()).unwrap()).collect();
        return String::from_utf16_lossy(&units).into_output();
    }
    if let Some(parts) = input["parts"].as_array() {
        let part = |part: &Value| if part["type"] == "input_text" { Part::text(text(part, "text")) } else { Part::image(text(part, "image_url")) };
        return Content::new(parts.iter().map(part)).into_output();
    }
    input["value"].clone().into_output()
}

fn outcome_of(case: &Value) -> Outcome {
    let input = &case["input"];
    match text(case, "kind") {
        "success" => Outcome::Success { output: output_of(input).unwrap().0 },
        "failure" => Outcome::Failure { error: text(input, "error").into(), cause: input["cause"].as_str().map(str::to_owned) },
        "retry" => Outcome::Retry { reason: text(input, "reason").into(), after: Duration::from_millis(input["after_ms"].as_u64().unwrap_or(0)) },
        "uncertain" => Outcome::Uncertain { reason: text(input, "reason").into() },
        "released" => Outcome::Released,
        other => panic!("{other} is no kind"),
    }
}

#[test]
fn outcomes() {
    each("outcomes.json", |c| {
        if c["kind"] == "deferred" {
            return; // not offered
        }
        let message = OutcomeMessage::of(&dispatch_of(&c["call"]), &outcome_of(c), text(&c["input"], "executor")).unwrap();
        let want = &c["expect"];
        assert_eq!(message.subject, text(want, "subject"));
        assert_eq!(message.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<HashMap<_, _>>(), headers(want));
        let mut got: Value = serde_json::from_slice(&message.payload).unwrap();
        let mut expected = json_of(text(want, "payload"));
        if let Some(file) = want["output_text"].as_str() {
            let written = bytes(file);
            if want["output_is_json"] == true {
                assert_eq!(serde_json::from_str::<Value>(text(&got, "output")).unwrap(), serde_json::from_slice::<Value>(&written).unwrap());
            } else {
                assert_eq!(text(&got, "output").as_bytes(), written);
            }
            got["output"] = Value::Null;
            expected["output"] = Value::Null;
        }
        assert_eq!(got, expected);
    });
}

/// Milliseconds of what policies say.
fn milliseconds(text: &str) -> f64 {
    let units = [("ms", 1.0), ("us", 1e-3), ("µs", 1e-3), ("ns", 1e-6), ("s", 1e3), ("m", 6e4), ("h", 3.6e6)];
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
        let unit = units.iter().find(|(unit, _)| rest[at..].starts_with(unit)).unwrap();
        sum += rest[..at].parse::<f64>().unwrap() * unit.1;
        rest = &rest[at + unit.0.len()..];
    }
    sum
}

fn in_milliseconds(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, v)| match v.as_str() {
                Some(time) if ["timeout", "queue_timeout", "total_deadline", "initial", "max"].contains(&name.as_str()) => {
                    (name.clone(), json!(milliseconds(time)))
                }
                _ => (name.clone(), in_milliseconds(v)),
            })
            .collect(),
        other => other.clone(),
    }
}

fn time(policy: &Value, name: &str) -> Option<Duration> {
    policy[name].as_str().map(|text| Duration::from_secs_f64(milliseconds(text) / 1000.0))
}

async fn nothing(_: Call) -> Result<(), Error> {
    Ok(())
}

async fn verify(_: serde_json::Map<String, Value>, _: Call) -> Result<Verdict, Error> {
    Ok(Verdict::not_done())
}

/// A function as a registration declares it; none when the types allow no such function.
fn function_of(declared: &Value) -> Option<Function> {
    let policy = &declared["policy"];
    let parameters = declared.get("parameters").cloned().unwrap_or_else(|| json!({}));
    let mut f = Function::raw(text(declared, "name"), parameters, nothing);
    if let Some(text) = declared["description"].as_str() {
        f = f.description(text);
    }
    if declared["verifies"] == true {
        f = f.verify(verify);
    }
    if let Some(word) = policy["effects"].as_str() {
        f = f.effects([Effects::None, Effects::Idempotent, Effects::SideEffects].into_iter().find(|e| e.wire() == word)?);
    }
    if let Some(word) = policy["on_uncertain"].as_str() {
        f = f.on_uncertain(OnUncertain::of_wire(word)?);
    }
    if let Some(attempts) = policy.get("attempts") {
        f = f.attempts(u32::try_from(attempts.as_u64()?).ok()?);
    }
    if policy["backoff"].is_object() {
        let b = &policy["backoff"];
        f = f.backoff(Backoff {
            initial: time(b, "initial"),
            max: time(b, "max"),
            multiplier: b["multiplier"].as_f64(),
            jitter: b["jitter"].as_f64(),
        });
    }
    if policy.get("timeout").is_some_and(|t| !t.as_str().is_some_and(|t| !t.starts_with('-') && t.ends_with(|c: char| c.is_alphabetic()))) {
        return None;
    }
    if let Some(time) = time(policy, "timeout") {
        f = f.timeout(time);
    }
    if let Some(time) = time(policy, "queue_timeout") {
        f = f.queue_timeout(time);
    }
    if let Some(time) = time(policy, "total_deadline") {
        f = f.total_deadline(time);
    }
    Some(f)
}

#[test]
fn registrations() {
    each("registrations.json", |c| {
        let input = &c["input"];
        let f = function_of(&input["function"]).unwrap();
        let executor = &input["executor"];
        let info = ExecutorInfo {
            id: text(executor, "id").into(),
            version: executor["version"].as_str().map(str::to_owned),
            host: text(executor, "host").into(),
        };
        let functions: Vec<String> = serde_json::from_value(input["functions"].clone()).unwrap();
        let definition = Definition { name: f.name.clone(), json: f.definition() };
        let mut got: Value = serde_json::from_slice(&requests::registration(text(input, "pool"), &definition, &functions, &info)).unwrap();
        let mut want = json_of(text(&c["expect"], "payload"));
        for (member, default) in [("parameters", json!({})), ("verifies", json!(false)), ("policy", json!({}))] {
            for side in [&mut got, &mut want] {
                side["function"].as_object_mut().unwrap().entry(member).or_insert_with(|| default.clone());
            }
        }
        want["executor"]["language"] = json!("rust");
        assert_eq!(names().register(&f.name), text(&c["expect"], "subject"));
        assert_eq!(in_milliseconds(&got), in_milliseconds(&want));
    });
}

#[test]
fn registrations_that_are_refused_here_already() {
    each("invalid-registrations.json", |c| {
        // Others ask with what no executor can be made to ask with: another subject, another protocol.
        if !["invalid_pool", "invalid_function"].contains(&text(c, "code")) {
            return;
        }
        let request = json_of(text(c, "payload"));
        if let Some(f) = function_of(&request["function"]) {
            Executor::new(text(&request, "pool")).function(f).check().unwrap_err();
        }
    });
}

#[test]
fn registration_replies() {
    each("registration-replies.json", |c| {
        let (reply, want) = (requests::registration_reply(&bytes(text(c, "payload"))), &c["expect"]);
        match reply {
            RegistrationReply::Accepted(Binding { calls_stream, consumer, ack_wait_ms, max_payload, result_prefix, refresh_ms }) => {
                let got = json!({"calls_stream": calls_stream, "consumer": consumer, "ack_wait_ms": ack_wait_ms, "max_payload": max_payload,
                    "result_prefix": result_prefix, "refresh_ms": refresh_ms});
                assert_eq!(got, want["binding"]);
            }
            RegistrationReply::Refused { code, .. } => assert_eq!(code, text(want, "code")),
            RegistrationReply::Unclear(_) => assert_eq!(want["again"], true),
        }
    });
}

#[test]
fn lookups() {
    each("lookups.json", |c| {
        let d = dispatch_of(&c["call"]);
        assert_eq!(names().outcome(&d.function), text(&c["expect"], "subject"));
        assert_eq!(serde_json::from_slice::<Value>(&requests::lookup(&d)).unwrap(), json_of(text(&c["expect"], "payload")));
    });
}

#[test]
fn lookup_replies() {
    each("lookup-replies.json", |c| {
        let want = match text(&c["expect"], "standing") {
            "pending" => Some(Standing::Pending),
            "unknown" => Some(Standing::Unknown),
            "answered" => Some(Standing::Answered),
            "cancelled" => Some(Standing::Cancelled),
            _ => None,
        };
        assert_eq!(requests::standing(&bytes(text(c, "payload"))), want);
    });
}

#[test]
fn cancel_notices() {
    each("cancels.json", |c| {
        let got = requests::cancel(&bytes(text(c, "payload"))).map_or(
            Value::Null,
            |(key, reason)| json!({"session_id": key.session_id, "turn_id": key.turn_id, "call_id": key.call_id, "reason": reason}),
        );
        assert_eq!(got, c["expect"]);
    });
}

#[test]
fn pull_statuses() {
    each("pull-statuses.json", |c| {
        let headers = headers(c);
        let description = headers.get("Description").map_or("", String::as_str);
        let action = pulls::action(headers["Status"].parse().unwrap(), description);
        let want = match text(c, "action") {
            "continue" => Action::Continue,
            "ended" => Action::Ended,
            "register" => Action::Register,
            "pull_again" => Action::PullAgain,
            "ask_consumer_info" => Action::AskConsumerInfo,
            "fault" => Action::Fault,
            other => panic!("{other} is no action"),
        };
        assert_eq!(action, want);
        if action == Action::Ended {
            assert_eq!(pulls::pending(headers.get("Nats-Pending-Messages").map(String::as_str)) as u64, c["pending"].as_u64().unwrap());
        }
    });
}

#[test]
fn numbers_of_deliveries() {
    each("deliveries.json", |c| assert_eq!(deliveries_of(text(c, "reply")), c["deliveries"].as_u64().unwrap()));
}

#[test]
fn terminations() {
    each("terms.json", |c| {
        let (got, want) = (requests::term(text(c, "reason"), &headers(c)), bytes(text(c, "body")));
        let body = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes.strip_prefix(b"+TERM ").unwrap()).unwrap();
        assert_eq!(body(&got), body(&want));
    });
}

#[test]
fn times() {
    for (ms, text) in [(0, "0ms"), (999, "999ms"), (1500, "1.5s"), (90_000, "1m30s"), (3_600_000, "1h0m0s"), (5_400_250, "1h30m0.25s")] {
        assert_eq!(super::texts::duration(Duration::from_millis(ms)), text);
    }
}
