//! Call messages.

use std::collections::HashMap;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::names::{self, Names};
use super::texts::quote;
use crate::{CallKey, OnUncertain};

/// One hand-over of an attempt, as its message says.
#[derive(Clone)]
pub(crate) struct Dispatch {
    pub(crate) key: CallKey,
    pub(crate) function: String,
    /// The very bytes that the model wrote.
    pub(crate) arguments: Bytes,
    pub(crate) attempt: u64,
    pub(crate) handover: u64,
    /// Proof that an outcome answers this attempt; never logged, never given to handlers.
    pub(crate) nonce: String,
    pub(crate) result_subject: String,
    pub(crate) idempotency_key: String,
    /// `None` when the function's own holds.
    pub(crate) timeout_ms: Option<u64>,
    /// Milliseconds since 1970.
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) traceparent: Option<String>,
    pub(crate) tracestate: Option<String>,
    pub(crate) uncertain: bool,
    /// `None` when it is left to the function.
    pub(crate) on_uncertain: Option<OnUncertain>,
}

impl Dispatch {
    /// Names the hand-over within this process.
    pub(crate) fn handover_id(&self) -> (CallKey, u64, u64) {
        (self.key.clone(), self.attempt, self.handover)
    }
}

impl fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // without nonce and arguments
        write!(f, "{} {:?} attempt {}", self.function, self.key, self.attempt)
    }
}

/// Says why a message is no call.
#[derive(Clone, Debug)]
pub(crate) struct NotACall(pub(crate) String);

/// Reads a call message. Names of headers are compared byte by byte.
pub(crate) fn decode(names: &Names, subject: &str, headers: &HashMap<String, String>, payload: &Bytes) -> Result<Dispatch, NotACall> {
    let header = |name: &str| headers.get(name).map_or("", String::as_str);
    let version = header("Fn-Protocol");
    if version != names::PROTOCOL_VERSION {
        return Err(NotACall(format!("protocol {}; this executor speaks {}", quote(version), names::PROTOCOL_VERSION)));
    }
    let mut read = Payload::read(payload)?;
    let key = CallKey { session_id: read.text("session_id")?, turn_id: read.text("turn_id")?, call_id: read.text("call_id")? };
    let function = read.text("name")?;
    let token = subject.rsplit('.').next().unwrap_or_default();
    if names::token(&function) != token {
        return Err(NotACall(format!("the call is for function {} but came on {}", quote(&function), quote(subject))));
    }
    let result_subject = header("Fn-Result-Subject");
    if !names.is_result(result_subject, token) {
        return Err(NotACall("header Fn-Result-Subject is not a result subject of this function".into()));
    }
    let nonce = header("Fn-Nonce");
    if nonce.is_empty() || nonce.len() > 128 || !nonce.bytes().all(names::is_word) {
        return Err(NotACall("header Fn-Nonce is missing or malformed".into()));
    }
    let on_uncertain = match header("Fn-On-Uncertain") {
        "" => None,
        choice => Some(OnUncertain::of_wire(choice).ok_or_else(|| NotACall(format!("header Fn-On-Uncertain is {}", quote(choice))))?),
    };
    let idempotency_key = Some(header("Fn-Idempotency-Key")).filter(|key| !key.is_empty()).map_or_else(|| idempotency_key(&key), str::to_owned);
    Ok(Dispatch {
        idempotency_key,
        arguments: read.arguments.unwrap_or_else(|| Bytes::from_static(b"{}")),
        attempt: number("Fn-Attempt", header("Fn-Attempt"))?,
        handover: number("Fn-Handover", header("Fn-Handover"))?,
        nonce: nonce.to_owned(),
        result_subject: result_subject.to_owned(),
        timeout_ms: optional("Fn-Timeout-Ms", header("Fn-Timeout-Ms"))?,
        deadline_ms: optional("Fn-Deadline", header("Fn-Deadline"))?,
        traceparent: present(header("traceparent")),
        tracestate: present(header("tracestate")),
        uncertain: header("Fn-Uncertain") == "1",
        on_uncertain,
        key,
        function,
    })
}

fn present(value: &str) -> Option<String> {
    Some(value.to_owned()).filter(|text| !text.is_empty())
}

fn optional(name: &str, value: &str) -> Result<Option<u64>, NotACall> {
    if value.is_empty() { Ok(None) } else { number(name, value).map(Some) }
}

fn number(name: &str, value: &str) -> Result<u64, NotACall> {
    let read: Option<i64> = value.parse().ok();
    read.and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0).ok_or_else(|| NotACall(format!("header {name} is {}", quote(value))))
}

/// The key of a call that a handler hands to its downstreams, as dispatchers compute it.
pub(crate) fn idempotency_key(key: &CallKey) -> String {
    let mut hash = Sha256::new();
    for id in [&key.session_id, &key.turn_id, &key.call_id] {
        hash.update(format!("{}:", id.len()));
        hash.update(id);
    }
    format!("call_{}", &names::base64(&hash.finalize())[..22])
}

/// A call's payload: its members that are texts, and the very bytes of its arguments.
struct Payload {
    texts: HashMap<String, String>,
    arguments: Option<Bytes>,
}

/// What begins the arguments in what dispatchers write; see docs/protocol.md.
const MARK: &[u8] = br#","arguments":"#;

impl Payload {
    fn read(bytes: &Bytes) -> Result<Self, NotACall> {
        let unreadable = || NotACall("the payload cannot be read: it is not one JSON object".into());
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Self::of_text(bytes, text).map_err(|_| unreadable());
        }
        // Arguments that are not UTF-8 do not make the message no call.
        let at = bytes.windows(MARK.len()).position(|window| window == MARK).ok_or_else(unreadable)?;
        if bytes.last() != Some(&b'}') {
            return Err(unreadable());
        }
        let head = [&bytes[..at], b"}"].concat();
        let head = std::str::from_utf8(&head).map_err(|_| unreadable())?;
        let mut payload = Self::of_text(bytes, head).map_err(|_| unreadable())?;
        payload.arguments = Some(bytes.slice(at + MARK.len()..bytes.len() - 1));
        Ok(payload)
    }

    fn of_text(bytes: &Bytes, text: &str) -> serde_json::Result<Self> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let payload = reader.deserialize_map(Members(bytes))?;
        reader.end()?;
        Ok(payload)
    }

    fn text(&mut self, name: &str) -> Result<String, NotACall> {
        self.texts.remove(name).filter(|text| !text.is_empty()).ok_or_else(|| NotACall(format!("{name} is missing or not a text")))
    }
}

/// Reads the members of a payload, of which the holder of the bytes is given, so that arguments are not copied.
struct Members<'b>(&'b Bytes);

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Payload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Payload, M::Error> {
        let mut payload = Payload { texts: HashMap::new(), arguments: None };
        while let Some(name) = members.next_key::<String>()? {
            let value: &RawValue = members.next_value()?;
            payload.texts.remove(&name); // of members that come twice the last one counts
            if name == "arguments" {
                payload.arguments = Some(self.part(value.get()));
            } else if let Ok(text) = serde_json::from_str(value.get()) {
                payload.texts.insert(name, text);
            }
        }
        Ok(payload)
    }
}

impl Members<'_> {
    fn part(&self, text: &str) -> Bytes {
        let (from, whole) = (text.as_ptr() as usize, self.0.as_ptr() as usize);
        if from >= whole && from + text.len() <= whole + self.0.len() {
            return self.0.slice_ref(text.as_bytes());
        }
        Bytes::copy_from_slice(text.as_bytes())
    }
}
