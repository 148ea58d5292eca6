use crate::error::Error;
use crate::output::{IntoOutput, Output};

/// What a verify handler found out about an earlier run.
#[derive(Debug)]
pub struct Verdict(pub(crate) Finding);

#[derive(Debug)]
pub(crate) enum Finding {
    Done(Result<Output, Error>),
    NotDone,
    CannotTell(String),
}

impl Verdict {
    /// The earlier run took effect; the call is answered with that output.
    pub fn done(output: impl IntoOutput) -> Self {
        Self(Finding::Done(output.into_output()))
    }

    /// The earlier run took no effect, and will not: the call is run.
    #[must_use]
    pub fn not_done() -> Self {
        Self(Finding::NotDone)
    }

    /// It cannot be told. The reason is for operators.
    pub fn cannot_tell(reason: impl Into<String>) -> Self {
        Self(Finding::CannotTell(reason.into()))
    }
}
