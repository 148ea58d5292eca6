package call

// The texts for the model about a call that was handed out several times without an
// outcome: CrashedText, and UnknownOutcomeText after it where the call may have had an
// effect. Why its executors were lost is not known: the function may have ended them, or
// they were killed, cut off or stood still.
const (
	CrashedText        = "function crashed or its executors were lost: it was handed out several times and never finished"
	UnknownOutcomeText = "the outcome of this call is unknown: an earlier run was interrupted and may or may not have taken effect; do not assume either"
)
