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
	switch {
	case t.policy.OnUncertain == call.UncertainPark && dv != nil:
		s.park(t, *dv)
	case t.policy.OnUncertain == call.UncertainPark:
		s.testify(t, text)
	case dv != nil:
		s.giveUp(t, *dv, reason, text)
	default:
		s.fail(t, reason, text)
	}
}

// testify says on the executors' behalf that nobody can tell, since none has said so: a
// parked call has its reason in the queue, should the store forget.
func (s *session) testify(t *tracked, why string) {
	t.busy = true
	d, o := s.dispatch(t), call.Outcome{Kind: call.Uncertain, Reason: why, Executor: "the dispatcher"}
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.work, publishTimeout)
		defer cancel()
		err := s.d.queue.Report(ctx, d, o)
		return func() {
			s.free(t)
			now := time.Now()
			t.deadline = now.Add(time.Minute) // it is back long before
			if err != nil {
				s.fault(troublePublish, err)
				t.deadline = now.Add(time.Second)
			}
			s.due.deadlines = earlier(s.due.deadlines, t.deadline)
		}
	})
}

// park leaves the call to an operator. Nothing ends a parked call but a decision, a late
// result, or the session. The outcome that said so stays in the queue as long.
func (s *session) park(t *tracked, dv call.Delivered) {
	t.busy = true
	why := noteFrom(dv.Outcome, dv.Outcome.Reason)
	move := results.Move{Key: t.Key, To: call.Parked, Attempt: t.attempt, Handover: t.handover, Note: why}
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
						s.park(t, dv)
					}
				})
				return
			}
			s.recovered(troubleMove)
			if !t.state.Open() {
				dv.Ack() // a result was faster
				return
			}
			t.keep(dv)
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
	s.audit()
}

// runAgain hands a parked call over as a new attempt. The decision's message goes once
// the new hand-over is on record.
func (s *session) runAgain(dv call.Delivered, attempt int) {
	t := s.calls[dv.Outcome.Key]
	switch {
	case t == nil || t.state == call.Absent:
		s.orphaned(dv)
	case t.state != call.Parked || t.attempt != attempt:
		dv.Ack() // decided before, or answered
	case t.busy:
		s.later(50*time.Millisecond, func() { s.runAgain(dv, attempt) })
	default:
		now := time.Now()
		s.d.obs.Count(EventDecided)
		t.begun = now
		t.releases = append(append(t.releases, dv.Ack), t.kept()...)
		t.note = "run again by " + dv.Outcome.Executor
		s.nextAttempt(t, now)
	}
}
