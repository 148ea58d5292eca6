package executor

import (
	"context"
	"fmt"
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

// verifiable says whether an executor may find out what became of a call that may have
// run, so that a stop leaves it to its lease, for the next one to ask.
func (f *function) verifiable(d call.Dispatch) bool {
	switch f.onUncertain(d) {
	case call.UncertainVerify:
		return true
	case call.UncertainPark:
		return f.verify != nil
	default:
		return false
	}
}

// unknown ends a call that may have run and about which this executor finds out nothing
// more: an operator or the model is told so. why is for the operator.
func (f *function) unknown(d call.Dispatch, why string) ending {
	if f.onUncertain(d) == call.UncertainPark {
		return uncertain(why)
	}
	return failed(call.ReasonUnknownOutcome, unknownOutcomeText)
}

// resolve decides about a call that may have run and is not answered; false lets it
// run. verify asks the verify handler.
func (f *function) resolve(d call.Dispatch, verify func() (ending, bool)) (ending, bool) {
	switch {
	case f.onUncertain(d) == call.UncertainRerun:
		return ending{}, false
	case f.verifiable(d) && f.verify == nil:
		return uncertain(noVerifyText), true
	case f.verifiable(d):
		return verify()
	default:
		return f.unknown(d, mayHaveRunText), true
	}
}

// again decides about a call that may have run already; false lets it run.
func (v *delivery) again() (ending, bool) {
	standing, err := v.lookup()
	switch {
	case standing == call.StandingAnswered:
		return ending{reason: "answered"}, true
	case standing == call.StandingCancelled, v.held.isCancelled():
		return ending{reason: "cancelled"}, true
	case v.Deliveries() > crashLimit:
		return v.crashed(), true
	case err != nil:
		return v.notLookedUp(), true
	}
	return v.f.resolve(v.d, v.verify)
}

// wanted asks about a call that a cancel notice came before; false ends it.
func (v *delivery) wanted() (ending, bool) {
	standing, err := v.lookup()
	switch {
	case standing == call.StandingAnswered:
		return ending{reason: "answered"}, false
	case standing == call.StandingCancelled:
		return ending{reason: "cancelled"}, false
	case err != nil && !v.held.isCancelled() && v.soft.Err() == nil:
		return failed(call.ReasonDeadline, expiredText), false
	}
	return ending{}, true // a cancelled call and a stopping executor are seen next
}

// crashed ends a call whose earlier deliveries all ended without an outcome. Whether the
// function crashed its executors or they were lost for another reason is not known.
func (v *delivery) crashed() ending {
	switch {
	case v.f.policy.Effects == call.EffectsNone:
		return failed(call.ReasonCrashed, crashedText)
	case v.f.onUncertain(v.d) == call.UncertainPark:
		return uncertain(fmt.Sprintf("it crashed its executor, or its executor was lost, %d times in a row", v.Deliveries()-1))
	default:
		return failed(call.ReasonCrashed, crashedText+"; "+unknownOutcomeText)
	}
}

// notLookedUp ends a call about which no dispatcher answered before the executor
// stopped or the call's deadline passed.
func (v *delivery) notLookedUp() ending {
	stopped := v.soft.Err() != nil
	rerun := v.f.onUncertain(v.d) == call.UncertainRerun
	switch {
	case rerun && stopped:
		return ending{outcome: call.Outcome{Kind: call.Released}}
	case rerun:
		return failed(call.ReasonDeadline, expiredText)
	case stopped && v.f.verifiable(v.d):
		return leftToLease()
	default:
		return v.f.unknown(v.d, notLookedUpText)
	}
}

// verify asks the verify handler, with the lease kept; false lets the call run.
func (v *delivery) verify() (ending, bool) {
	switch {
	case v.held.isCancelled():
		return ending{reason: "cancelled"}, true
	case v.soft.Err() != nil: // a release would make the call look fresh
		return leftToLease(), true
	case !time.Now().Before(v.d.Deadline):
		return v.f.unknown(v.d, notVerifiedText), true
	}
	asked := v.ex.verify(v.hard, v.f, v.d)
	v.entered = append(v.entered, asked)
	v.held.started(func() { asked.cancel(ErrCancelled) })
	return asked.ending()
}

// lookup asks until a dispatcher answers, the call is cancelled, its deadline passes or
// the executor stops.
func (v *delivery) lookup() (call.Standing, error) {
	ctx, cancel := context.WithDeadline(v.soft, v.d.Deadline)
	defer cancel()
	v.held.started(cancel)
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		standing, err := v.link.Lookup(ctx, v.d)
		if err == nil {
			return standing, nil
		}
		if wait == retryFirst && ctx.Err() == nil {
			v.log.Warn("no dispatcher says whether a call is still wanted; asking on", append(logKeys(v.d), "error", err)...)
		}
		if !pause(ctx, wait) {
			return "", err
		}
	}
}
