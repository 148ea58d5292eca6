use super::registered::Registered;
use super::wording;
use crate::OnUncertain;
use crate::wire::calls::Dispatch;
use crate::wire::outcome::Outcome;

/// What is done with a delivered call.
#[derive(Debug)]
pub(super) struct Ending {
    /// Reported, if there is one.
    pub(super) outcome: Option<Outcome>,
    /// Leaves the call in the stream; otherwise it is acked.
    pub(super) keep: bool,
    /// Why nothing is reported, or the kind; for the log.
    pub(super) reason: &'static str,
}

impl Ending {
    pub(super) fn reported(outcome: Outcome) -> Self {
        let reason = outcome.kind();
        Self { outcome: Some(outcome), keep: false, reason }
    }

    pub(super) fn released() -> Self {
        Self::reported(Outcome::Released)
    }

    /// Leaves the call to the next executor, which gets it as one that may have run.
    pub(super) fn left_to_lease() -> Self {
        Self { outcome: None, keep: true, reason: "left" }
    }

    pub(super) fn failed(cause: &str, error: impl Into<String>) -> Self {
        Self::reported(Outcome::Failure { error: error.into(), cause: Some(cause.to_owned()) })
    }

    pub(super) fn uncertain(reason: impl Into<String>) -> Self {
        Self::reported(Outcome::Uncertain { reason: reason.into() })
    }

    pub(super) fn dropped(reason: &'static str) -> Self {
        Self { outcome: None, keep: false, reason }
    }

    /// Ends a call that may have run and about which this executor finds out nothing more. `why` is for operators.
    pub(super) fn unknown_outcome(f: &Registered, d: &Dispatch, why: &str) -> Self {
        if f.choice(d) == OnUncertain::Park { Self::uncertain(why) } else { Self::failed("unknown_outcome", wording::UNKNOWN_OUTCOME) }
    }
}
