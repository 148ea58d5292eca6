//! The event log of protocol/conformance.md.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::time::SystemTime;

use callfan::Call;
use serde_json::json;

/// Appends events, each with one write.
pub(crate) struct Journal(File);

impl Journal {
    pub(crate) fn open(path: &str) -> std::io::Result<Self> {
        OpenOptions::new().append(true).create(true).open(path).map(Self)
    }

    pub(crate) fn write(&self, event: &str, call: &Call) {
        let at_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let line = json!({
            "event": event,
            "function": call.function(),
            "call_id": call.key().call_id,
            "attempt": call.attempt(),
            "idempotency_key": call.idempotency_key(),
            "at_ms": at_ms,
            "pid": std::process::id(),
        });
        (&self.0).write_all(format!("{line}\n").as_bytes()).expect("the event log can be written");
    }
}
