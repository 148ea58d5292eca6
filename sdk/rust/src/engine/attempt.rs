use std::time::Duration;

use super::ending::Ending;
use super::registered::Registered;
use super::running::{Cause, Running, Surroundings};
use super::{about, wording};
use crate::OnUncertain;
use crate::error::{Error, ErrorKind};
use crate::output::Output;
use crate::wire::calls::Dispatch;
use crate::wire::outcome::Outcome;
use crate::wire::texts::duration;

/// Waits for what one run of a handler comes to.
pub(super) async fn ending(running: &mut Running<Output>, f: &Registered, d: &Dispatch, at: &Surroundings) -> Ending {
    match running.result(at).await {
        (_, Some(Cause::Cancelled)) => Ending::dropped("cancelled"),
        (Some(Ok(Ok(Output(output)))), _) => Ending::reported(Outcome::Success { output }),
        (_, Some(Cause::Stopped)) => cut_off(f, d), // an error, if there is one, is most likely the cancellation's
        (Some(Ok(Err(error))), _) => failed(error, f, d),
        (Some(Err(panic)), _) => {
            about!(error, d, panic, "function crashed");
            Ending::failed("panic", wording::PANIC)
        }
        (None, _) => late(running, d),
    }
}

fn failed(error: Error, f: &Registered, d: &Dispatch) -> Ending {
    let told = |text: String| if text.trim().is_empty() { wording::SILENT_FAILURE.to_owned() } else { text };
    Ending::reported(match error.kind {
        ErrorKind::Failure { error, cause } => Outcome::Failure { error: told(error), cause },
        ErrorKind::Retry { reason, after } => Outcome::Retry { reason: told(reason), after },
        ErrorKind::Uncertain { reason } => return lost(f, d, told(reason)),
    })
}

/// What may be run again is retried, what can be verified is left to its lease, of any other the outcome is unknown.
fn lost(f: &Registered, d: &Dispatch, why: String) -> Ending {
    if f.choice(d) == OnUncertain::Rerun {
        return Ending::reported(Outcome::Retry { reason: why, after: Duration::ZERO });
    }
    if f.verifiable(d) && f.verify.is_some() { Ending::left_to_lease() } else { Ending::unknown_outcome(f, d, &why) }
}

fn late(running: &Running<Output>, d: &Dispatch) -> Ending {
    let took = format!("timed out after {}", duration(running.allowed()));
    if d.deadline_ms == Some(running.deadline_ms) {
        return Ending::failed("deadline", format!("{took}, at the call's deadline"));
    }
    Ending::failed("timeout", took)
}

/// What may be run again is given back, what can be verified is left to its lease, of any other the outcome is unknown.
fn cut_off(f: &Registered, d: &Dispatch) -> Ending {
    if f.choice(d) == OnUncertain::Rerun {
        return Ending::released();
    }
    if f.verifiable(d) { Ending::left_to_lease() } else { Ending::unknown_outcome(f, d, wording::INTERRUPTED) }
}
