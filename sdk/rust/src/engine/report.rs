use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::leases::Lease;
use super::{Link, LinkError, about, now_ms, until};
use crate::wire::calls::Dispatch;
use crate::wire::outcome::Outcome;

/// How long, at least, an outcome is tried to be reported.
pub(super) const FOR: Duration = Duration::from_secs(60);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(5);

/// Publishes an outcome, again and again while the server does not store it, with the lease held all the while. Whether it
/// was stored.
pub(super) async fn store<L: Link>(link: &L, d: &Dispatch, lease: &Lease, outcome: Outcome, give_up: &CancellationToken) -> bool {
    let until_ms = (now_ms() + 60_000).max(d.deadline_ms.unwrap_or(0));
    lease.hold_until(until_ms);
    let result = timeout(until(until_ms), try_on(link, d, outcome, give_up)).await;
    let error = match result {
        Ok(Ok(())) => return true,
        Ok(Err(e)) => e.to_string(),
        Err(_) => "it was tried long enough".to_owned(),
    };
    about!(error, d, error, "outcome could not be reported; the call will be delivered again");
    false
}

async fn try_on<L: Link>(link: &L, d: &Dispatch, mut outcome: Outcome, over: &CancellationToken) -> Result<(), LinkError> {
    let mut wait = RETRY_FIRST;
    loop {
        let failure = match link.report(d, &outcome, over).await {
            Ok(()) => return Ok(()),
            Err(e @ LinkError::TooLarge { .. }) if outcome.cause() != Some("too_large") => {
                outcome = Outcome::Failure { error: e.to_string(), cause: Some("too_large".into()) };
                continue;
            }
            Err(LinkError::Invalid(e)) if outcome.cause() != Some("invalid_output") => {
                about!(error, d, error = e.0, "outcome is not valid; the model is told");
                outcome = Outcome::Failure { error: "the function's output is not valid".into(), cause: Some("invalid_output".into()) };
                continue;
            }
            Err(e @ (LinkError::Denied(_) | LinkError::GivenUp)) => return Err(e),
            Err(e) => e,
        };
        if over.is_cancelled() {
            return Err(failure);
        }
        if wait == RETRY_FIRST {
            about!(warn, d, error = failure.to_string(), "outcome was not stored; trying on");
        }
        tokio::select! {
            () = over.cancelled() => return Err(failure),
            () = sleep(wait) => wait = (2 * wait).min(RETRY_LAST),
        }
    }
}
