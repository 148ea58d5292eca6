package executor

import (
	"context"
	"errors"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

const (
	// crashLimit is how many deliveries of one hand-over may end without an outcome,
	// because the function crashed its executor or that was lost for another reason.
	crashLimit = 3
	// unservedDelay keeps a call that nobody here serves from going round at full speed.
	unservedDelay = 250 * time.Millisecond
	// reportFor is how long, at least, an outcome is tried to be reported.
	reportFor = time.Minute
	// The delays between lookups and between reports that failed, doubling.
	retryFirst, retryLast = 100 * time.Millisecond, 5 * time.Second
)

// delivery is one delivered call on its way through the executor.
type delivery struct {
	*worker
	taken
	d       call.Dispatch
	f       *function
	held    *held
	lease   *lease
	ran     bool    // the handler was entered
	entered []entry // the handlers that were entered
}

// entry is an entry into the user's code.
type entry interface{ leave() (abandoned bool) }

// handle takes a delivered call to its end: run it, or answer it without, report,
// ack. The order of the last two is what loses no result; nothing is naked (ADR 0010).
func (w *worker) handle(t taken) {
	began := time.Now()
	d := t.Dispatch()
	if err := t.Invalid(); err != nil {
		w.invalid(t, err)
		return
	}
	held, first := w.inflight.add(d)
	if !first { // the run in hand extends this delivery's lease as well, and its ack removes it
		w.log.Warn("call delivered again while it runs here", append(logKeys(d), "deliveries", t.Deliveries())...)
		w.ex.cfg.Observer.Finished(Finish{Function: d.Function, Reason: "repeated", Took: time.Since(began)})
		return
	}
	defer w.inflight.remove(d)
	if d.Deadline.IsZero() {
		d.Deadline = began.Add(reportFor + max(d.Timeout, 0))
	}
	v := &delivery{worker: w, taken: t, d: d, f: w.ex.function(d.Function), held: held, lease: w.leases.hold(t, d.Deadline)}
	defer v.lease.drop()
	end := v.settle(v.decide())
	end.Took = time.Since(began)
	w.ex.cfg.Observer.Finished(end)
	for _, e := range v.entered {
		if e.leave() {
			w.abandoned.Add(1)
		}
	}
}

// invalid leaves a message that is no call to its lease, since a newer executor may
// understand it, and removes it after the crash limit. It cannot be answered here: what
// names the attempt is perhaps not readable. A dispatcher answers it from its headers, or
// at the call's deadline.
func (w *worker) invalid(t taken, err error) {
	removed := t.Deliveries() > crashLimit
	w.log.Error("message is not a call", "error", err, "deliveries", t.Deliveries(), "removed", removed)
	if removed {
		_ = t.Term(err.Error()) // a message that stays comes back here
	}
	w.ex.cfg.Observer.Finished(Finish{Reason: "invalid"})
}

// decide runs the call, unless there is a reason to end it without.
func (v *delivery) decide() ending {
	if v.f == nil {
		return v.unserved()
	}
	redelivered := v.Deliveries() > 1 || v.d.Uncertain
	switch {
	case redelivered:
		if end, over := v.again(); over {
			return end
		}
	case v.held.noticed:
		if end, wanted := v.wanted(); !wanted {
			return end
		}
	}
	switch {
	case v.held.isCancelled():
		return ending{reason: "cancelled"}
	case v.soft.Err() != nil:
		return ending{outcome: call.Outcome{Kind: call.Released}}
	case !time.Now().Before(v.d.Deadline):
		return failed(call.ReasonDeadline, expiredText)
	}
	if (v.leases.doubtful() || v.leases.late(v.Transit())) && v.f.onUncertain(v.d) != call.UncertainRerun {
		return v.stale()
	}
	return v.run(redelivered)
}

// stale ends a call that may be with another executor by now, before it is started
// here: the one that has it decides, or the next one after this lease.
func (v *delivery) stale() ending {
	v.log.Warn("the process or its connection stood still for about a lease; a call that may be with another executor is not started",
		append(logKeys(v.d), "transit", v.Transit())...)
	switch v.f.onUncertain(v.d) {
	case call.UncertainVerify, call.UncertainPark:
		return leftToLease() // an operator is not asked about a call that another executor runs
	default:
		return failed(call.ReasonUnknownOutcome, unknownOutcomeText)
	}
}

func (v *delivery) run(uncertain bool) ending {
	v.ex.cfg.Observer.Started(v.d.Function)
	v.ran = true
	a := v.ex.begin(v.hard, v.f, v.d, uncertain)
	v.entered = append(v.entered, a)
	v.held.started(func() { a.cancel(ErrCancelled) })
	return a.ending()
}

// unserved gives back a call of a function that is not handled here: the processes
// of a pool do not serve the same functions, as after a half-done rollout. A call
// that may have run is left to its lease, since a release would hide that.
func (v *delivery) unserved() ending {
	v.log.Warn("call of a function that this executor does not serve; all processes of a pool must serve the same functions", logKeys(v.d)...)
	pause(v.soft, unservedDelay)
	if v.Deliveries() > 1 || v.d.Uncertain {
		return ending{keep: true, reason: "unserved"}
	}
	return ending{outcome: call.Outcome{Kind: call.Released}}
}

// settle reports and acks as the ending says.
func (v *delivery) settle(end ending) Finish {
	f := Finish{Reason: end.reason, Ran: v.ran}
	if v.f != nil {
		f.Function = v.d.Function
	}
	if end.outcome.Kind != "" {
		o, err := v.report(outcome(v.d, end.outcome))
		if err != nil {
			v.log.Error("outcome could not be reported; the call will be delivered again", append(logKeys(v.d), "error", err)...)
			f.Reason = "unreported"
			return f
		}
		f.Kind = o.Kind
		if f.Reason == "" || o.Kind != end.outcome.Kind {
			f.Reason = reason(o)
		}
	}
	if !end.keep {
		v.ack(v.taken)
	}
	return f
}

// report publishes the outcome, again and again while the server does not store it,
// with the lease held all the while. It gives the outcome that was stored, which is
// a failure when o is larger than the server takes.
func (v *delivery) report(o call.Outcome) (call.Outcome, error) {
	until := time.Now().Add(reportFor)
	if v.d.Deadline.After(until) {
		until = v.d.Deadline
	}
	v.lease.extend(until)
	ctx, cancel := context.WithDeadline(v.reporting, until)
	defer cancel()
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		o.Executor = v.ex.cfg.ID
		err := v.link.Report(ctx, v.d, o)
		var large *tooLargeError
		switch {
		case err == nil:
			return o, nil
		case errors.As(err, &large) && o.Cause != call.ReasonTooLarge:
			o = outcome(v.d, call.Outcome{Kind: call.Failure, Cause: call.ReasonTooLarge, Error: large.Error()})
			continue
		case errors.Is(err, errInvalidOutcome) && o.Cause != call.ReasonInvalidOutput:
			v.log.Error("outcome is not valid; the model is told", append(logKeys(v.d), "error", err)...)
			o = outcome(v.d, call.Outcome{Kind: call.Failure, Cause: call.ReasonInvalidOutput, Error: "the function's output is not valid"})
			continue
		case errors.Is(err, errDenied):
			return o, err
		case wait == retryFirst && ctx.Err() == nil:
			v.log.Warn("outcome was not stored; trying on", append(logKeys(v.d), "error", err)...)
		}
		if !pause(ctx, wait) {
			return o, err
		}
	}
}

func (w *worker) ack(t taken) {
	if err := t.Ack(); err != nil {
		w.log.Warn("ack failed; the call will be delivered again and found answered", append(logKeys(t.Dispatch()), "error", err)...)
	}
}

// pause waits for d; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
