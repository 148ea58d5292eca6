package executor

import "github.com/callfan/callfan/pkg/call"

// ending is what is done with a delivered call.
type ending struct {
	// outcome is reported unless its kind is empty.
	outcome call.Outcome
	// reason says why nothing is reported; beside an outcome it is more precise than
	// the outcome itself.
	reason string
	// keep leaves the call in the stream; otherwise it is acked.
	keep bool
}

func failed(cause, text string) ending {
	return ending{outcome: call.Outcome{Kind: call.Failure, Cause: cause, Error: text}}
}

func uncertain(reason string) ending {
	return ending{outcome: call.Outcome{Kind: call.Uncertain, Reason: reason}}
}

// leftToLease leaves the call to the next executor, which gets it as a call that may
// have run.
func leftToLease() ending { return ending{keep: true, reason: "left"} }

// reason is the machine word of a reported outcome.
func reason(o call.Outcome) string {
	switch {
	case o.Cause != "":
		return o.Cause
	case o.Kind == call.Success || o.Kind == call.Failure:
		return call.ReasonHandler
	default:
		return string(o.Kind)
	}
}
