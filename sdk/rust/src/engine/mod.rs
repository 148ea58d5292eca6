//! What an executor does with calls, over any link to the queue. It runs on a thread of its own, so that no handler holds up
//! leases, timeouts or outcomes.

mod attempt;
mod delivery;
mod ending;
mod inflight;
mod leases;
mod link;
mod registered;
mod report;
mod running;
mod slots;
mod trial;
mod uncertainty;
mod verification;
mod wording;
mod worker;

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

pub(crate) use link::Deliver;
pub(crate) use link::{Delivered, Link, LinkError, Taken};
pub(crate) use registered::{Code, Entered, Registered};
pub(crate) use trial::trial;
pub(crate) use worker::{Settings, Worker};

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The time until that moment, milliseconds since 1970, as far as a timer reaches.
fn until(ms: u64) -> Duration {
    Duration::from_millis(ms.saturating_sub(now_ms())).min(Duration::from_secs(30 * 24 * 3600))
}

/// Logs about a call: constant message, its ids as fields.
macro_rules! about {
    ($level:ident, $d:expr, $($rest:tt)+) => {{
        let d = &$d;
        tracing::$level!(
            session_id = d.key.session_id,
            turn_id = d.key.turn_id,
            call_id = d.key.call_id,
            function = d.function,
            attempt = d.attempt,
            $($rest)+
        )
    }};
}
pub(crate) use about;
