package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// returnGrace is how long a handler may take to return after its context ended,
// before its slot is given to another call.
const returnGrace = time.Second

// running is one entry into the user's code, a handler or a verify handler, which
// answers with a T. It survives what that code does to its goroutine.
type running[T any] struct {
	ex       *Executor
	f        *function
	d        call.Dispatch
	handler  string // which one, for logs
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stop     context.CancelFunc // releases the deadline's timer
	deadline time.Time
	began    time.Time
	done     chan returned[T]
	ended    bool // done was received
}

// returned is what the code came to.
type returned[T any] struct {
	value   T
	err     error
	crashed bool
}

// enter runs the code in its own goroutine, bounded by the function's timeout and
// the call's deadline.
func enter[T any](ctx context.Context, ex *Executor, f *function, d call.Dispatch, uncertain bool, handler string, code func(context.Context, Call) (T, error)) *running[T] {
	r := &running[T]{ex: ex, f: f, d: d, handler: handler, began: time.Now(), done: make(chan returned[T], 1)}
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = time.Duration(f.policy.Timeout)
	}
	r.deadline = r.began.Add(timeout)
	if !d.Deadline.IsZero() && d.Deadline.Before(r.deadline) {
		r.deadline = d.Deadline
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	ctx, r.stop = context.WithDeadlineCause(ctx, r.deadline, ErrTimeout)
	c := Call{
		Key: d.Key, Function: d.Function, Arguments: d.Arguments, Attempt: max(d.Attempt, 1),
		IdempotencyKey: d.IdempotencyKey(), Deadline: r.deadline, Uncertain: uncertain, Traceparent: d.Traceparent,
	}
	r.ctx = withCall(ctx, c)
	go func() { r.done <- r.run(c, code) }()
	return r
}

func (r *running[T]) run(c Call, code func(context.Context, Call) (T, error)) (result returned[T]) {
	finished := false
	defer func() {
		if finished {
			return
		}
		cause := recover() // nil: the code ended its goroutine by runtime.Goexit
		r.log().Error("function crashed", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		result = returned[T]{crashed: true}
		if cause == nil {
			r.done <- result // deferred calls are the last thing that this goroutine does
		}
	}()
	result.value, result.err = code(r.ctx, c)
	finished = true
	return result
}

// wait waits for what the code comes to; false when it did not return before its
// time was over, the call was cancelled or, by a grace, the executor stopped.
func (r *running[T]) wait() (returned[T], bool) {
	select {
	case result := <-r.done:
		return r.end(result)
	case <-r.ctx.Done():
	}
	select { // a result that is there counts
	case result := <-r.done:
		return r.end(result)
	default:
	}
	if r.timedOut() || r.cancelled() {
		return returned[T]{}, false
	}
	grace := time.NewTimer(returnGrace)
	defer grace.Stop()
	select {
	case result := <-r.done:
		return r.end(result)
	case <-grace.C:
		return returned[T]{}, false
	}
}

func (r *running[T]) end(result returned[T]) (returned[T], bool) {
	r.ended = true
	return result, true
}

func (r *running[T]) timedOut() bool  { return errors.Is(context.Cause(r.ctx), ErrTimeout) }
func (r *running[T]) cancelled() bool { return errors.Is(context.Cause(r.ctx), ErrCancelled) }

// interrupted says whether the executor's hard stop ended the context.
func (r *running[T]) interrupted() bool {
	return r.ctx.Err() != nil && !r.timedOut() && !r.cancelled()
}

// leave ends the context and waits a moment for the code to return. Code that does
// not is abandoned: logged, counted, and its late return logged.
func (r *running[T]) leave() (abandoned bool) {
	defer r.stop()
	r.cancel(nil)
	if r.ended {
		return false
	}
	grace := time.NewTimer(returnGrace)
	defer grace.Stop()
	select {
	case <-r.done:
		return false
	case <-grace.C:
	}
	log := r.log()
	log.Warn("handler does not return; its slot is given to other calls", "cause", context.Cause(r.ctx))
	r.ex.cfg.Observer.Abandoned(r.d.Function)
	go func() {
		<-r.done
		log.Warn("abandoned handler returned; its result is ignored", "late_by", time.Since(r.deadline).Round(time.Millisecond))
	}()
	return true
}

func (r *running[T]) log() *slog.Logger {
	return r.ex.cfg.Logger.With(append(logKeys(r.d), "handler", r.handler)...)
}

func logKeys(d call.Dispatch) []any {
	return []any{"session_id", d.Session, "turn_id", d.Turn, "call_id", d.Call.Call, "function", d.Function, "attempt", d.Attempt}
}
