use super::about;
use super::ending::Ending;
use super::running::{Cause, Running, Surroundings};
use crate::error::Error;
use crate::output::Output;
use crate::verdict::{Finding, Verdict};
use crate::wire::calls::Dispatch;
use crate::wire::outcome::Outcome;
use crate::wire::texts::duration;

/// Waits for the verdict of one run of a verify handler; none lets the call run.
pub(super) async fn ending(running: &mut Running<Verdict>, d: &Dispatch, at: &Surroundings) -> Option<Ending> {
    let (result, cause) = running.result(at).await;
    if cause == Some(Cause::Cancelled) {
        return Some(Ending::dropped("cancelled"));
    }
    match (result, cause) {
        (Some(Ok(Ok(Verdict(Finding::Done(output))))), _) => {
            about!(info, d, verdict = "done", "uncertain call was verified");
            Some(done(output))
        }
        (Some(Ok(Ok(Verdict(Finding::NotDone)))), _) => {
            about!(info, d, verdict = "not_done", "uncertain call was verified");
            None
        }
        (_, Some(Cause::Stopped)) => Some(Ending::left_to_lease()),
        (Some(Ok(Ok(Verdict(Finding::CannotTell(reason))))), _) => {
            about!(warn, d, "uncertain call could not be verified");
            Some(Ending::uncertain(if reason.is_empty() { "the verify handler could not tell".to_owned() } else { reason }))
        }
        (Some(Ok(Err(error))), _) => {
            about!(error, d, "verify handler failed");
            Some(Ending::uncertain(format!("the verify handler failed: {error}")))
        }
        (Some(Err(panic)), _) => {
            about!(error, d, panic, "verify handler crashed");
            Some(Ending::uncertain("the verify handler failed"))
        }
        (None, _) => Some(Ending::uncertain(format!("the verify handler did not answer within {}", duration(running.allowed())))),
    }
}

fn done(output: Result<Output, Error>) -> Ending {
    match output {
        Ok(Output(output)) => Ending::reported(Outcome::Success { output }),
        Err(e) => Ending::failed("invalid_output", e.to_string()),
    }
}
