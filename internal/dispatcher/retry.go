package dispatcher

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// retry decides about an attempt that failed for a technical reason: another one
// after a wait, if the function's policy has one left and its deadline allows it, or
// an error for the model.
func (s *session) retry(t *tracked, dv call.Delivered, now time.Time) {
	s.lookUp(t)
	at := now.Add(max(s.d.retryDelay(t.policy, t.attempt), dv.Outcome.After))
	last := t.begun.Add(time.Duration(t.policy.TotalDeadline))
	if t.attempt >= t.policy.Attempts || !at.Before(last) {
		s.giveUp(t, dv, call.ReasonGaveUp, fmt.Sprintf("%s failed for a technical reason, attempt %d of %d: %s",
			t.Function, t.attempt, t.policy.Attempts, dv.Outcome.Reason))
		return
	}
	// On record before the message goes: a new owner must find the attempt counted.
	t.busy = true
	failed := results.Move{
		Key: t.Key, To: call.Retrying, Attempt: t.attempt, Handover: t.handover,
		Note: noteFrom(dv.Outcome, fmt.Sprintf("attempt %d from %s; technical failure: %s",
			t.attempt+1, at.UTC().Format(time.RFC3339), dv.Outcome.Reason)),
	}
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, requestTimeout)
		defer cancel()
		err := s.record(ctx, []results.Move{failed})
		return func() {
			s.free(t)
			if err != nil {
				s.notRecorded(err)
				s.later(time.Second, func() { s.notAResult(dv, t.attempt) })
				return
			}
			s.recovered(troubleMove)
			dv.Ack()
			if !t.state.Open() {
				return // a result was faster
			}
			s.d.obs.Count(EventRetried)
			s.enter(t, call.Retrying, dv.Outcome.Reason, time.Now())
			s.tryAgain(t, at)
		}
	})
}

// tryAgain has the call handed over once more after a technical failure. Where executors
// verify, they do so before this attempt as well: another run of the failed one may be
// under way, since its delivery came again when the lease of the first ran out.
func (s *session) tryAgain(t *tracked, at time.Time) {
	s.nextAttempt(t, at)
	t.uncertain = t.verifies
}

// nextAttempt has the call handed over once more at the given time.
func (s *session) nextAttempt(t *tracked, at time.Time) {
	t.attempt++
	t.handover = 1
	t.published, t.uncertain, t.gone, t.tried, t.publishAt = false, false, false, time.Time{}, at
	t.sequence, t.unproven = 0, false
	s.setDeadline(t)
	s.wantPublish(at)
}

// retryDelay is the wait after attempt n.
func (d *Dispatcher) retryDelay(p call.Policy, n int) time.Duration {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Duration(p.Backoff.Initial)), backoff.WithMaxInterval(time.Duration(p.Backoff.Max)),
		backoff.WithMultiplier(p.Backoff.Multiplier), backoff.WithRandomizationFactor(p.Backoff.Jitter),
		backoff.WithMaxElapsedTime(0))
	delay := b.NextBackOff()
	for range n - 1 {
		delay = b.NextBackOff()
	}
	return delay
}

// giveUp answers the model with an error in place of an outcome that is none.
func (s *session) giveUp(t *tracked, dv call.Delivered, reason, text string) {
	s.save(t, results.Completion{
		Key: t.Key, Function: t.Function, OutcomeID: dv.ID, Attempt: t.attempt, Adopt: true,
		Result: call.Result{Reason: reason, Error: text}, Note: noteFrom(dv.Outcome, reason),
	}, &dv)
}

// noteFrom is a note about an outcome.
func noteFrom(o call.Outcome, what string) string {
	if o.Executor == "" {
		return what
	}
	return what + ", by " + o.Executor
}
