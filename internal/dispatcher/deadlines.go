package dispatcher

import (
	"context"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// deadlineSlack is granted on top of a call's own times, for the way back.
const deadlineSlack = 5 * time.Second

// setDeadline decides when the session stops waiting for an outcome of an open call.
func (s *session) setDeadline(t *tracked) {
	switch {
	case t.deferred:
		t.deadline = t.claimed.Add(s.d.cfg.DeferredTimeout)
	case t.tried.IsZero() && t.attempt > 1:
		t.deadline = t.begun.Add(time.Duration(t.policy.TotalDeadline))
	case t.tried.IsZero():
		// Nobody has the call. A registered function's own times count from its
		// publication, which sets the deadline anew.
		t.deadline = t.begun.Add(s.d.cfg.UnknownAfter)
	default:
		t.deadline = t.tried.Add(time.Duration(t.policy.QueueTimeout+t.policy.Timeout) + deadlineSlack)
		if last := t.begun.Add(time.Duration(t.policy.TotalDeadline)); last.Before(t.deadline) {
			t.deadline = last
		}
	}
	s.due.deadlines = earlier(s.due.deadlines, t.deadline)
}

// stepDeadlines answers calls that nobody took or finished in time, and puts on
// record what has been in the queue for long.
func (s *session) stepDeadlines(_ context.Context, now time.Time) time.Time {
	if s.due.deadlines.IsZero() || now.Before(s.due.deadlines) {
		return s.due.deadlines
	}
	s.due.deadlines = time.Time{}
	again := func(at time.Time) { s.due.deadlines = earlier(s.due.deadlines, at) }
	for _, t := range s.calls {
		switch {
		case !t.state.Open(), t.state == call.Parked && t.published:
		case t.busy:
			again(now.Add(100 * time.Millisecond))
		case !t.listed && !t.published:
			again(now.Add(time.Second)) // the next GET tells
		case t.untaken() && !now.Before(t.overdue()):
			s.withdraw(t)
		case !now.Before(t.deadline):
			s.expire(t)
		default:
			again(t.deadline)
			if t.untaken() {
				again(t.overdue())
			}
			switch {
			case t.gone && !now.Before(t.publishAt):
				t.published = false
				s.wantPublish(now)
			case t.gone:
				again(t.publishAt)
			case t.published && t.state == call.Seen:
				again(s.markQueued(t, now))
			}
		}
	}
	return s.due.deadlines
}

// expire answers a call whose time is over.
func (s *session) expire(t *tracked) {
	if t.tried.IsZero() {
		s.fail(t, call.ReasonNoExecutor, noExecutor(t))
		return
	}
	s.unsure(t, call.ReasonDeadline, fmt.Sprintf(
		"no outcome of %s arrived in time; it is unknown whether it took effect", t.Function), nil)
}

// markQueued puts on record that a call is in the queue, and says when, if not yet:
// beyond the duplicate window a later owner could not find out by publishing again
// (ADR 0005).
func (s *session) markQueued(t *tracked, now time.Time) time.Time {
	mark := t.tried.Add(s.d.cfg.DuplicateWindow / 4)
	if now.Before(mark) {
		return mark
	}
	s.enter(t, call.Queued, "", now)
	s.moves.add(results.Move{Key: t.Key, To: call.Queued, Attempt: t.attempt, Handover: t.handover}, nil, now)
	return time.Time{}
}
