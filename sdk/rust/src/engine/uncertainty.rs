use super::ending::Ending;
use super::registered::{Code, Registered};
use super::wording;
use crate::OnUncertain;
use crate::verdict::Verdict;
use crate::wire::calls::Dispatch;

/// What is to be done about a call that may have run and is not answered.
pub(super) enum Resolution<'f> {
    Run,
    End(Ending),
    Verify(&'f Code<Verdict>),
}

pub(super) fn resolve<'f>(f: &'f Registered, d: &Dispatch) -> Resolution<'f> {
    if f.choice(d) == OnUncertain::Rerun {
        return Resolution::Run;
    }
    if !f.verifiable(d) {
        return Resolution::End(Ending::unknown_outcome(f, d, wording::MAY_HAVE_RUN));
    }
    match &f.verify {
        Some(verify) => Resolution::Verify(verify),
        None => Resolution::End(Ending::uncertain(wording::NO_VERIFY)),
    }
}
