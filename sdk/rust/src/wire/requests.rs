//! What an executor asks dispatchers, what they answer, and what they say unasked.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::calls::Dispatch;
use super::outcome::key_members;
use super::texts::{cut, quote};
use crate::CallKey;

/// The definition of a function, as it is registered.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    /// The member `function` of the registration.
    pub(crate) json: Value,
}

/// Who registers, for operators.
#[derive(Clone, Debug)]
pub(crate) struct ExecutorInfo {
    pub(crate) id: String,
    pub(crate) version: Option<String>,
    pub(crate) host: String,
}

/// What a registered executor needs to pull calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) calls_stream: String,
    pub(crate) consumer: String,
    pub(crate) ack_wait_ms: u64,
    pub(crate) max_payload: u64,
    pub(crate) result_prefix: String,
    pub(crate) refresh_ms: u64,
}

pub(crate) fn registration(pool: &str, definition: &Definition, functions: &[String], executor: &ExecutorInfo) -> Vec<u8> {
    let mut info = json!({"id": executor.id, "language": "rust", "host": executor.host});
    if let Some(version) = &executor.version {
        info["version"] = json!(version);
    }
    let request = json!({"protocol": 1, "pool": pool, "function": definition.json, "functions": functions, "executor": info});
    request.to_string().into_bytes()
}

/// The answer to a registration.
#[derive(Debug)]
pub(crate) enum RegistrationReply {
    Accepted(Binding),
    Refused {
        code: String,
        message: String,
    },
    /// Nothing to go by: ask again.
    Unclear(String),
}

pub(crate) fn registration_reply(payload: &[u8]) -> RegistrationReply {
    let reply = read(payload);
    if !reply.is_object() {
        return RegistrationReply::Unclear("the answer is not readable".into());
    }
    if reply["error"].is_object() {
        let (code, message) = (text(&reply["error"], "code"), text(&reply["error"], "message"));
        if code == "unavailable" {
            return RegistrationReply::Unclear(message);
        }
        return RegistrationReply::Refused { code, message };
    }
    let b = &reply["binding"];
    let number = |name: &str| b[name].as_u64().unwrap_or(0);
    let binding = Binding {
        calls_stream: text(b, "calls_stream"),
        consumer: text(b, "consumer"),
        ack_wait_ms: number("ack_wait_ms"),
        max_payload: number("max_payload"),
        result_prefix: text(b, "result_prefix"),
        refresh_ms: number("refresh_ms"),
    };
    if reply["ok"] != json!(true) || binding.calls_stream.is_empty() || binding.consumer.is_empty() {
        return RegistrationReply::Unclear("the answer has no binding".into());
    }
    RegistrationReply::Accepted(binding)
}

/// Asks how a call stands.
pub(crate) fn lookup(d: &Dispatch) -> Vec<u8> {
    format!("{{{},\"nonce\":{},\"handover\":{}}}", key_members(&d.key), quote(&d.nonce), d.handover).into_bytes()
}

/// How a call stands with the dispatchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Pending,
    Unknown,
    Answered,
    Cancelled,
}

/// The standing in the answer to a look-up.
pub(crate) fn standing(payload: &[u8]) -> Option<Standing> {
    match text(&read(payload), "standing").as_str() {
        "pending" => Some(Standing::Pending),
        "unknown" => Some(Standing::Unknown),
        "answered" => Some(Standing::Answered),
        "cancelled" => Some(Standing::Cancelled),
        _ => None,
    }
}

/// Whose call a cancel notice is about, and why; none when it is to be ignored.
pub(crate) fn cancel(payload: &[u8]) -> Option<(CallKey, String)> {
    let notice = read(payload);
    let key = CallKey { session_id: text(&notice, "session_id"), turn_id: text(&notice, "turn_id"), call_id: text(&notice, "call_id") };
    let named = !key.session_id.is_empty() && !key.turn_id.is_empty() && !key.call_id.is_empty();
    named.then(|| (key, text(&notice, "reason")))
}

/// What a stream says to a publication: its name, or an error with its code.
pub(crate) fn pub_ack(payload: &[u8]) -> Result<String, (u64, String)> {
    let ack = read(payload);
    let error = &ack["error"];
    if error.is_object() {
        return Err((error["err_code"].as_u64().unwrap_or(0), format!("{} {}", error["code"], text(error, "description"))));
    }
    Ok(text(&ack, "stream"))
}

/// The code of the error in an answer of the JetStream API, 0 without one.
pub(crate) fn api_error(payload: &[u8]) -> u64 {
    match read(payload).get("error") {
        Some(Value::Object(error)) => error.get("code").and_then(Value::as_u64).unwrap_or(500),
        _ => 0,
    }
}

const TERM_HEADERS: [(&str, &str); 5] = [
    ("key", "Fn-Key"),
    ("attempt", "Fn-Attempt"),
    ("nonce", "Fn-Nonce"),
    ("result_subject", "Fn-Result-Subject"),
    ("on_uncertain", "Fn-On-Uncertain"),
];

/// What is published on the reply subject of a message that is no call.
pub(crate) fn term(reason: &str, headers: &HashMap<String, String>) -> Vec<u8> {
    let line = reason.split(['\r', '\n']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let mut body = Map::from_iter([("reason".to_owned(), json!(cut(&line, 256)))]);
    for (name, header) in TERM_HEADERS {
        if let Some(value) = headers.get(header).filter(|value| !value.is_empty()) {
            body.insert(name.to_owned(), json!(value));
        }
    }
    format!("+TERM {}", Value::Object(body)).into_bytes()
}

fn read(payload: &[u8]) -> Value {
    serde_json::from_slice(payload).unwrap_or(Value::Null)
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
