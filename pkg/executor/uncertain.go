package executor

import (
	"context"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// onUncertain is what to do with a call that may have run: as the dispatcher says,
// or else as the function declares.
func (f *function) onUncertain(d call.Dispatch) call.OnUncertain {
	if d.OnUncertain != "" {
		return d.OnUncertain
	}
	return f.policy.OnUncertain
}

// resolve decides about a call that may have run and is not answered; false lets it
// run. verify asks the verify handler.
func (f *function) resolve(d call.Dispatch, verify func() (ending, bool)) (ending, bool) {
	switch f.onUncertain(d) {
	case call.UncertainRerun:
		return ending{}, false
	case call.UncertainVerify:
		if f.verify == nil {
			return uncertain(noVerifyText), true
		}
		return verify()
	default:
		return failed(call.ReasonUnknownOutcome, unknownOutcomeText), true
	}
}

// again decides about a call that may have run already; false lets it run.
func (v *delivery) again() (ending, bool) {
	rerun := v.f.onUncertain(v.d) == call.UncertainRerun
	standing, err := v.lookup()
	switch {
	case standing == call.StandingAnswered:
		return ending{reason: "answered"}, true
	case standing == call.StandingCancelled:
		return ending{reason: "cancelled"}, true
	case !rerun && v.Deliveries() > crashLimit:
		return failed(call.ReasonCrashed, crashedText+"; "+unknownOutcomeText), true
	case v.Deliveries() > crashLimit:
		return failed(call.ReasonCrashed, crashedText), true
	case err != nil:
		return v.notLookedUp(), true
	}
	return v.f.resolve(v.d, v.verify)
}

// notLookedUp ends a call about which no dispatcher answered before the executor
// stopped or the call's deadline passed.
func (v *delivery) notLookedUp() ending {
	stopped := v.soft.Err() != nil
	switch v.f.onUncertain(v.d) {
	case call.UncertainRerun:
		if stopped {
			return ending{outcome: call.Outcome{Kind: call.Released}}
		}
		return failed(call.ReasonDeadline, expiredText)
	case call.UncertainVerify:
		if stopped {
			return leftToLease()
		}
	}
	return failed(call.ReasonUnknownOutcome, unknownOutcomeText)
}

// verify asks the verify handler, with the lease kept; false lets the call run.
func (v *delivery) verify() (ending, bool) {
	switch {
	case v.held.isCancelled():
		return ending{reason: "cancelled"}, true
	case v.soft.Err() != nil: // a release would make the call look fresh
		return leftToLease(), true
	case !time.Now().Before(v.d.Deadline):
		return failed(call.ReasonUnknownOutcome, unknownOutcomeText), true
	}
	asked := v.ex.verify(v.hard, v.f, v.d)
	v.entered = append(v.entered, asked)
	v.held.started(func() { asked.cancel(ErrCancelled) })
	return asked.ending()
}

// lookup asks until a dispatcher answers, the call's deadline passes or the executor
// stops.
func (v *delivery) lookup() (call.Standing, error) {
	ctx, cancel := context.WithDeadline(v.soft, v.d.Deadline)
	defer cancel()
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		standing, err := v.link.Lookup(ctx, v.d)
		if err == nil {
			return standing, nil
		}
		if wait == retryFirst && ctx.Err() == nil {
			v.log.Warn("no dispatcher says whether a call delivered again is answered; asking on", append(logKeys(v.d), "error", err)...)
		}
		if !pause(ctx, wait) {
			return "", err
		}
	}
}
