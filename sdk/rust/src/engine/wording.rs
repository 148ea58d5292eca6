//! Texts for the model and for operators that the executor itself decides; docs/protocol.md lists those of the protocol.

pub(super) const UNKNOWN_OUTCOME: &str =
    "the outcome of this call is unknown: an earlier run was interrupted and may or may not have taken effect; do not assume either";
pub(super) const CRASHED: &str = "function crashed or its executors were lost: it was handed out several times and never finished";
pub(super) const PANIC: &str = "function crashed";
pub(super) const EXPIRED: &str = "the call's deadline passed before the function was started";
pub(super) const NO_VERIFY: &str = "on_uncertain is verify, and this executor has no verify handler for the function";
pub(super) const MAY_HAVE_RUN: &str = "it may have run before, and this executor has no verify handler for the function";
pub(super) const NOT_LOOKED_UP: &str = "it may have run before, and no dispatcher said in time whether it was answered";
pub(super) const NOT_VERIFIED: &str = "it may have run before, and the call's deadline passed before it could be verified";
pub(super) const INTERRUPTED: &str = "the executor stopped and interrupted the function";
pub(super) const SILENT_FAILURE: &str = "the function failed without saying why";
