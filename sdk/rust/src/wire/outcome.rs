//! Outcome messages.

use std::time::Duration;

use bytes::Bytes;

use super::calls::Dispatch;
use super::names::PROTOCOL_VERSION;
use super::texts::{cut, executor_name, quote};
use crate::CallKey;

const LONGEST_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
const LONGEST_REASON: usize = 64 << 10;

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// `output` is JSON: a string, an array of content parts, or null.
    Success {
        output: String,
    },
    /// `cause` is none for a business failure without one.
    Failure {
        error: String,
        cause: Option<String>,
    },
    Retry {
        reason: String,
        after: Duration,
    },
    Uncertain {
        reason: String,
    },
    Released,
}

impl Outcome {
    /// The word of the protocol.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Success { .. } => "success",
            Self::Failure { .. } => "failure",
            Self::Retry { .. } => "retry",
            Self::Uncertain { .. } => "uncertain",
            Self::Released => "released",
        }
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        match self {
            Self::Failure { cause, .. } => cause.as_deref(),
            _ => None,
        }
    }
}

/// An outcome that cannot be put on the wire.
#[derive(Debug)]
pub(crate) struct InvalidOutcome(pub(crate) String);

/// Whether the text may be the cause of a failure.
pub(crate) fn is_cause(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// The message that answers a hand-over.
#[derive(Debug)]
pub(crate) struct OutcomeMessage {
    pub(crate) subject: String,
    pub(crate) headers: [(&'static str, String); 2],
    pub(crate) payload: Bytes,
}

impl OutcomeMessage {
    pub(crate) fn of(d: &Dispatch, outcome: &Outcome, executor: &str) -> Result<Self, InvalidOutcome> {
        let name = executor_name(executor);
        let by = if name.is_empty() { String::new() } else { format!(",\"executor\":{}", quote(&name)) };
        let payload = format!("{{{},\"nonce\":{}{by},{}}}", key_members(&d.key), quote(&d.nonce), kind_members(outcome)?);
        let mut id = format!("{}.{}", d.nonce, outcome.kind());
        if *outcome == Outcome::Released {
            id = format!("{id}.{}", d.handover);
        }
        Ok(Self {
            subject: d.result_subject.clone(),
            headers: [("Nats-Msg-Id", id), ("Fn-Protocol", PROTOCOL_VERSION.to_owned())],
            payload: payload.into(),
        })
    }

    /// What the server compares with its limit: the payload and the encoded headers.
    pub(crate) fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len()).sum();
        "NATS/1.0\r\n\r\n".len() + headers + self.payload.len()
    }
}

fn kind_members(outcome: &Outcome) -> Result<String, InvalidOutcome> {
    Ok(match outcome {
        Outcome::Success { output } => format!("\"success\":true,\"output\":{output}"),
        Outcome::Failure { error, cause: None } => format!("\"success\":false,\"error\":{}", quote(error)),
        Outcome::Failure { error, cause: Some(cause) } if is_cause(cause) => {
            format!("\"success\":false,\"error\":{},\"cause\":\"{cause}\"", quote(error))
        }
        Outcome::Failure { cause: Some(cause), .. } => return Err(InvalidOutcome(format!("the cause {} is not 1 to 32 of a-z _", quote(cause)))),
        Outcome::Retry { reason, after } => {
            let after_ms = after.min(&LONGEST_AFTER).as_millis();
            format!("\"retry\":{{\"reason\":{},\"after_ms\":{after_ms}}}", quote(cut(reason, LONGEST_REASON)))
        }
        Outcome::Uncertain { reason } => format!("\"uncertain\":{{\"reason\":{}}}", quote(cut(reason, LONGEST_REASON))),
        Outcome::Released => "\"released\":true".to_owned(),
    })
}

/// The members that name a call.
pub(crate) fn key_members(key: &CallKey) -> String {
    format!("\"session_id\":{},\"turn_id\":{},\"call_id\":{}", quote(&key.session_id), quote(&key.turn_id), quote(&key.call_id))
}
