package call

// The texts for the model about a call that crashed its executors: CrashedText, and
// UnknownOutcomeText after it where the call may have had an effect.
const (
	CrashedText        = "function crashed: it was started several times and never finished"
	UnknownOutcomeText = "the outcome of this call is unknown: an earlier run was interrupted and may or may not have taken effect; do not assume either"
)
