package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/callfan/callfan/pkg/call"
)

// The errors of Decide. Nothing has changed then.
var (
	// ErrNoCall: there is no record of the call.
	ErrNoCall = errors.New("no record of the call: it was never claimed, or it ended longer ago than the retention")
	// ErrAnswered: the call has a result, or has ended.
	ErrAnswered = errors.New("the call has a result or has ended; nothing is left to decide")
	// ErrNotParked: only a parked call can be run again by a decision.
	ErrNotParked = errors.New("the call is not parked; it can be answered, and is not run again while it may be running")
	// ErrUnusable: the API would not take the result; the error says why.
	ErrUnusable = errors.New("the result cannot be submitted")
)

// Decision is what an operator decides about a call that has no result.
type Decision struct {
	// Rerun has a parked call run again, as a new attempt. Otherwise Result becomes the
	// call's result, unless another one is faster.
	Rerun  bool
	Result call.Result
	// By names who decided, for the call's history.
	By string
}

// Decide hands an operator's decision to whichever replica serves the session. It
// returns once the decision is stored in the queue, beside the outcomes of executors;
// the first result of a call wins, as always. Of two decisions of the same kind about
// the same attempt the first counts, and the second is dropped without an error.
func (d *Dispatcher) Decide(ctx context.Context, key call.Key, decision Decision) error {
	if err := d.usable(key.Session, decision); err != nil {
		return err
	}
	recs, err := d.store.Get(ctx, []call.Key{key})
	if err != nil {
		return err
	}
	rec := recs[0]
	switch {
	case rec.State == call.Absent:
		return fmt.Errorf("%s: %w", key, ErrNoCall)
	case !rec.State.Open():
		return fmt.Errorf("%s is %s: %w", key, rec.State, ErrAnswered)
	case decision.Rerun && rec.State != call.Parked:
		return fmt.Errorf("%s is %s: %w", key, rec.State, ErrNotParked)
	}
	o := call.Outcome{Kind: call.Rerun, Executor: operator(decision.By)}
	if !decision.Rerun {
		o.Kind, o.Error, o.Cause = call.Failure, decision.Result.Error, call.ReasonOperator
		if decision.Result.Success {
			o.Kind, o.Output, o.Error, o.Cause = call.Success, decision.Result.Output, "", ""
		}
	}
	attempt := max(rec.Attempt, 1)
	return d.queue.Report(ctx, call.Dispatch{
		Call:    call.Call{Key: key, Function: rec.Function},
		Attempt: attempt, Handover: 1,
		Nonce:     d.nonces.Decision(key, call.Token(rec.Function), attempt),
		Partition: call.Partition(key.Session, d.cfg.Partitions),
	}, o)
}

// usable refuses a result in whose place the model would get an error: that could not be
// taken back.
func (d *Dispatcher) usable(session string, decision Decision) error {
	if decision.Rerun {
		return nil
	}
	got := d.acceptable(session, decision.Result)
	if got.Success != decision.Result.Success || !got.Success && got.Error != decision.Result.Error {
		return fmt.Errorf("%w: %s", ErrUnusable, got.Error)
	}
	return nil
}

func operator(by string) string {
	if by == "" {
		return "an operator"
	}
	return "operator " + by
}
