package dispatcher

import (
	"context"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// unsure ends the work on a call that may have taken effect without anybody being able
// to tell: an operator decides, or the model is told, as the function's policy says.
// dv is the outcome that said so; nil when none came.
func (s *session) unsure(t *tracked, reason, text string, dv *call.Delivered) {
	s.lookUp(t)
	if t.policy.OnUncertain == call.UncertainPark {
		s.park(t, text, dv)
		return
	}
	if dv != nil {
		s.giveUp(t, *dv, reason, text)
		return
	}
	s.fail(t, reason, text)
}

// park leaves the call to an operator. That is on record before the outcome's message
// goes. Nothing ends a parked call but a decision, a late result, or the session.
func (s *session) park(t *tracked, why string, dv *call.Delivered) {
	t.busy = true
	move := results.Move{Key: t.Key, To: call.Parked, Attempt: t.attempt, Handover: t.handover, Note: why}
	if dv != nil {
		move.Note = noteFrom(dv.Outcome, dv.Outcome.Reason)
	}
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, requestTimeout)
		defer cancel()
		err := s.record(ctx, []results.Move{move})
		return func() {
			s.free(t)
			if err != nil {
				s.notRecorded(err)
				s.later(time.Second, func() {
					if s.calls[t.Key] == t && t.state.Open() {
						s.park(t, why, dv)
					}
				})
				return
			}
			s.recovered(troubleMove)
			if dv != nil {
				dv.Ack()
			}
			if !t.state.Open() {
				return // a result was faster
			}
			s.d.obs.Count(EventParked)
			s.log.Warn("a call may have taken effect and nobody can tell; an operator has to decide",
				"turn_id", t.Turn, "call_id", t.Key.Call, "function", t.Function, "reason", why)
			s.enter(t, call.Parked, call.ReasonUnknownOutcome, time.Now())
			t.published, t.gone = true, false
		}
	})
}

// notRecorded notes that a step could not be recorded.
func (s *session) notRecorded(err error) {
	if fenced(err) {
		s.p.lost()
		return
	}
	s.fault(troubleMove, err)
}

// runAgain hands a parked call over as a new attempt. The decision's message goes once
// the new hand-over is on record.
func (s *session) runAgain(t *tracked, dv call.Delivered, attempt int) {
	switch {
	case t == nil || t.state != call.Parked || t.attempt != attempt:
		dv.Ack() // decided before, or answered
	case t.busy:
		s.later(50*time.Millisecond, func() { s.runAgain(s.calls[t.Key], dv, attempt) })
	default:
		now := time.Now()
		s.d.obs.Count(EventDecided)
		t.begun = now
		t.releases = append(t.releases, dv.Ack)
		t.note = "run again by " + dv.Outcome.Executor
		s.nextAttempt(t, now)
	}
}
