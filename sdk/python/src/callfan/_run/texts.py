"""The texts for the model and for operators that executors decide; the Go SDK has the same."""

UNKNOWN_OUTCOME = (
    "the outcome of this call is unknown: an earlier run was interrupted and may or may not have taken effect; do not assume either"
)
CRASHED = "function crashed or its executors were lost: it was handed out several times and never finished"
NO_VERIFY = "on_uncertain is verify, and this executor has no verify handler for the function"
MAY_HAVE_RUN = "it may have run before, and this executor has no verify handler for the function"
NOT_LOOKED_UP = "it may have run before, and no dispatcher said in time whether it was answered"
NOT_VERIFIED = "it may have run before, and the call's deadline passed before it could be verified"
INTERRUPTED = "the executor stopped and interrupted the function"
EXPIRED = "the call's deadline passed before the function was started"
FUNCTION_CRASHED = "function crashed"
NO_REASON = "the function failed without saying why"
