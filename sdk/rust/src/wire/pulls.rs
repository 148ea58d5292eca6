//! How pulls are asked for, and what is said about them.

use std::time::Duration;

/// The time after which a pull that says nothing is lost.
pub(crate) const SILENCE: Duration = Duration::from_millis(2500);
pub(crate) const LARGEST: usize = 256;

/// A pull that is under way at a stop is waited for, since the client cannot end a subscription without losing what is on
/// its way. So a pull is short.
const EXPIRES: Duration = Duration::from_secs(2);
const HEARTBEAT: Duration = Duration::from_secs(1);
const HEARTBEATS_PER_LEASE: u32 = 6;
const BYTES: usize = 16 << 20;

/// How often a pull says that it is alive. Without it, a call that comes to an idle pull may have been on its way since the
/// last time.
pub(crate) fn heartbeat(ack_wait: Duration) -> Duration {
    if ack_wait.is_zero() { HEARTBEAT } else { HEARTBEAT.min(ack_wait / HEARTBEATS_PER_LEASE) }
}

pub(crate) fn request(batch: usize, max_payload: usize, ack_wait: Duration) -> String {
    format!(
        r#"{{"batch":{batch},"expires":{},"idle_heartbeat":{},"max_bytes":{}}}"#,
        EXPIRES.as_nanos(),
        heartbeat(ack_wait).as_nanos(),
        BYTES.max(2 * max_payload)
    )
}

/// What to do about a status message of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Continue,
    Ended,
    Register,
    PullAgain,
    AskConsumerInfo,
    Fault,
}

pub(crate) fn action(code: u16, description: &str) -> Action {
    match (code, description) {
        (100, _) => Action::Continue,
        (404 | 408, _) | (409, "Batch Completed" | "Message Size Exceeds MaxBytes") => Action::Ended,
        (409, "Consumer Deleted") => Action::Register,
        (503, _) => Action::AskConsumerInfo,
        (400, _) => Action::Fault,
        _ => Action::PullAgain,
    }
}

/// How many of the calls asked for will not come, by the header `Nats-Pending-Messages`.
pub(crate) fn pending(header: Option<&str>) -> usize {
    header.and_then(|text| text.parse().ok()).unwrap_or(0)
}
