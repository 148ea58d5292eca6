package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// returnGrace is how long a handler may take to return after its context ended,
// before its slot is given to another call.
const returnGrace = time.Second

// Invoke runs one attempt of a call in this process, with the function's
// middleware, timeout and encoding, and gives what would be reported. Nothing is
// looked up, reported or redelivered. It may be called before, during or without
// Run; package executortest makes it convenient for tests.
func (ex *Executor) Invoke(ctx context.Context, d call.Dispatch) call.Outcome {
	f := ex.function(d.Function)
	if f == nil {
		return outcome(d, call.Outcome{Kind: call.Failure, Cause: "unserved", Error: fmt.Sprintf("no function %q is handled here", d.Function)})
	}
	a := ex.begin(ctx, f, d, d.Uncertain)
	o, _ := a.outcome()
	a.leave()
	return o
}

// attempt is one run of a handler.
type attempt struct {
	ex       *Executor
	f        *function
	d        call.Dispatch
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stop     context.CancelFunc // releases the deadline's timer
	deadline time.Time
	began    time.Time
	done     chan returned
	ended    bool // done was received
}

// returned is what a handler came to.
type returned struct {
	output  Output
	err     error
	crashed bool
}

// begin enters the handler in its own goroutine.
func (ex *Executor) begin(ctx context.Context, f *function, d call.Dispatch, uncertain bool) *attempt {
	a := &attempt{ex: ex, f: f, d: d, began: time.Now(), done: make(chan returned, 1)}
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = time.Duration(f.policy.Timeout)
	}
	a.deadline = a.began.Add(timeout)
	if !d.Deadline.IsZero() && d.Deadline.Before(a.deadline) {
		a.deadline = d.Deadline
	}
	ctx, a.cancel = context.WithCancelCause(ctx)
	ctx, a.stop = context.WithDeadlineCause(ctx, a.deadline, ErrTimeout)
	c := Call{
		Key: d.Key, Function: d.Function, Arguments: d.Arguments, Attempt: max(d.Attempt, 1),
		IdempotencyKey: d.IdempotencyKey(), Deadline: a.deadline, Uncertain: uncertain, Traceparent: d.Traceparent,
	}
	a.ctx = withCall(ctx, c)
	go func() { a.done <- a.enter(c) }()
	return a
}

// enter runs the handler and survives what it does to its goroutine.
func (a *attempt) enter(c Call) (r returned) {
	finished := false
	defer func() {
		if finished {
			return
		}
		cause := recover() // nil: the handler ended its goroutine by runtime.Goexit
		a.ex.cfg.Logger.Error("function crashed", append(logKeys(a.d), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))...)
		r = returned{crashed: true}
		if cause == nil {
			a.done <- r // deferred calls are the last thing that this goroutine does
		}
	}()
	r.output, r.err = a.f.run(a.ctx, c)
	finished = true
	return r
}

// outcome waits for what the attempt comes to; false means that nothing is to be
// reported, because the call was cancelled.
func (a *attempt) outcome() (call.Outcome, bool) {
	select {
	case r := <-a.done:
		return a.returned(r)
	case <-a.ctx.Done():
	}
	select { // a result that is there counts
	case r := <-a.done:
		return a.returned(r)
	default:
	}
	switch {
	case errors.Is(context.Cause(a.ctx), ErrTimeout):
		return a.timedOut(), true
	case errors.Is(context.Cause(a.ctx), ErrCancelled):
		return call.Outcome{}, false
	}
	grace := time.NewTimer(returnGrace)
	defer grace.Stop()
	select {
	case r := <-a.done:
		return a.returned(r)
	case <-grace.C:
		return a.interrupted(), true
	}
}

func (a *attempt) returned(r returned) (call.Outcome, bool) {
	a.ended = true
	cause := context.Cause(a.ctx)
	var retry *retryError
	var failure *failureError
	switch {
	case errors.Is(cause, ErrCancelled):
		return call.Outcome{}, false
	case r.crashed:
		return a.failure(call.ReasonPanic, "function crashed"), true
	case r.err == nil:
		return outcome(a.d, call.Outcome{Kind: call.Success, Output: r.output.wire()}), true
	case cause != nil && !errors.Is(cause, ErrTimeout):
		return a.interrupted(), true // the error is most likely the context's
	case cause != nil && (errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, ErrTimeout)):
		return a.timedOut(), true
	case errors.As(r.err, &retry):
		return outcome(a.d, call.Outcome{Kind: call.Retry, Reason: errorText(r.err), After: retry.after}), true
	case errors.As(r.err, &failure):
		return a.failure(failure.cause, errorText(r.err)), true
	default:
		return a.failure("", errorText(r.err)), true
	}
}

func (a *attempt) timedOut() call.Outcome {
	after := a.deadline.Sub(a.began)
	if a.deadline.Equal(a.d.Deadline) {
		return a.failure(call.ReasonDeadline, fmt.Sprintf("timed out after %s, at the call's deadline", after.Round(time.Millisecond)))
	}
	return a.failure(call.ReasonTimeout, fmt.Sprintf("timed out after %s", after))
}

// interrupted answers a call whose handler the hard stop cut off: a function that
// may be run again is given back, for any other the outcome is unknown (ADR 0010).
func (a *attempt) interrupted() call.Outcome {
	if a.f.policy.Rerun() {
		return outcome(a.d, call.Outcome{Kind: call.Released})
	}
	return a.failure(call.ReasonUnknownOutcome, unknownOutcomeText)
}

func (a *attempt) failure(cause, text string) call.Outcome {
	return outcome(a.d, call.Outcome{Kind: call.Failure, Cause: cause, Error: text})
}

// leave ends the attempt's context and waits a moment for the handler. A handler
// that does not return is abandoned: logged, counted, and its late return logged.
func (a *attempt) leave() (abandoned bool) {
	defer a.stop()
	a.cancel(nil)
	if a.ended {
		return false
	}
	grace := time.NewTimer(returnGrace)
	defer grace.Stop()
	select {
	case <-a.done:
		return false
	case <-grace.C:
	}
	log := a.ex.cfg.Logger.With(logKeys(a.d)...)
	log.Warn("handler does not return; its slot is given to other calls", "cause", context.Cause(a.ctx))
	a.ex.cfg.Observer.Abandoned(a.d.Function)
	go func() {
		<-a.done
		log.Warn("abandoned handler returned; its result is ignored", "late_by", time.Since(a.deadline).Round(time.Millisecond))
	}()
	return true
}

// outcome addresses o as the answer to d.
func outcome(d call.Dispatch, o call.Outcome) call.Outcome {
	o.Key, o.Nonce = d.Key, d.Nonce
	return o
}

func logKeys(d call.Dispatch) []any {
	return []any{"session_id", d.Session, "turn_id", d.Turn, "call_id", d.Call.Call, "function", d.Function, "attempt", d.Attempt}
}
