package executor

import (
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Observer is told about calls as they pass, for metrics. Its methods are called
// from many goroutines and must return quickly.
type Observer interface {
	// Started: a handler was entered. Each is followed by one Finished.
	Started(function string)
	// Finished: the call was settled, or given up.
	Finished(f Finish)
	// Abandoned: a handler did not return a second after its context ended. Its slot
	// was given to other calls; its goroutine still runs.
	Abandoned(function string)
}

// Finish is the end of one delivery of a call.
type Finish struct {
	// Function is the name; empty when this executor does not serve it.
	Function string
	// Kind is what was reported; empty when nothing was.
	Kind call.Kind
	// Reason is a machine word: who decided and why. Reasons are those of pkg/call,
	// the kinds of outcome, "verified" for a success that the verify handler vouches
	// for, and, when nothing was reported, "cancelled", "answered", "repeated",
	// "invalid", "unserved", "unreported" or "left": to its lease, for another
	// executor to look it up and verify it.
	Reason string
	// Ran says that the handler was entered.
	Ran bool
	// Took is the time from the delivery to the end.
	Took time.Duration
}

type noObserver struct{}

func (noObserver) Started(string)   {}
func (noObserver) Finished(Finish)  {}
func (noObserver) Abandoned(string) {}
