package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// attempt is one run of a handler.
type attempt struct{ *running[Output] }

// begin enters the handler.
func (ex *Executor) begin(ctx context.Context, f *function, d call.Dispatch, uncertain bool) attempt {
	return attempt{enter(ctx, ex, f, d, uncertain, "function", f.run)}
}

// ending waits for what the attempt comes to.
func (a attempt) ending() ending {
	r, returned := a.wait()
	timeout := a.timedOut() && (!returned || errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, ErrTimeout))
	var retry *retryError
	var failure *failureError
	var lost *uncertainError
	switch {
	case a.cancelled():
		return ending{reason: "cancelled"}
	case r.crashed:
		return failed(call.ReasonPanic, "function crashed")
	case returned && r.err == nil:
		return ending{outcome: call.Outcome{Kind: call.Success, Output: r.value.wire()}}
	case a.interrupted(): // the error, if there is one, is most likely the context's
		return a.cutOff()
	case timeout:
		return a.late()
	case errors.As(r.err, &retry):
		return ending{outcome: call.Outcome{Kind: call.Retry, Reason: errorText(r.err), After: retry.after}}
	case errors.As(r.err, &lost):
		return a.lost(errorText(r.err))
	case errors.As(r.err, &failure):
		return failed(failure.cause, errorText(r.err))
	default:
		return failed("", errorText(r.err))
	}
}

func (a attempt) late() ending {
	after := a.deadline.Sub(a.began)
	if a.deadline.Equal(a.d.Deadline) {
		return failed(call.ReasonDeadline, fmt.Sprintf("timed out after %s, at the call's deadline", after.Round(time.Millisecond)))
	}
	return failed(call.ReasonTimeout, fmt.Sprintf("timed out after %s", after))
}

// cutOff ends a call whose handler the hard stop interrupted: what may be run again
// is given back, what can be verified is left to its lease, so that the next
// executor does it, and for any other the outcome is unknown (ADR 0010, ADR 0011).
func (a attempt) cutOff() ending {
	switch {
	case a.f.onUncertain(a.d) == call.UncertainRerun:
		return ending{outcome: call.Outcome{Kind: call.Released}}
	case a.f.verifiable(a.d):
		return leftToLease()
	default:
		return a.f.unknown(a.d, interruptedText)
	}
}

// lost ends a call of which its handler says that it may have taken effect.
func (a attempt) lost(why string) ending {
	switch {
	case a.f.onUncertain(a.d) == call.UncertainRerun:
		return ending{outcome: call.Outcome{Kind: call.Retry, Reason: why}}
	case a.f.verifiable(a.d) && a.f.verify != nil:
		return leftToLease()
	default:
		return a.f.unknown(a.d, why)
	}
}
