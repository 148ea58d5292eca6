package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

const publishTimeout = 40 * time.Second

// wantPublish asks for a look at the calls that are to be handed over.
func (s *session) wantPublish(at time.Time) { s.due.publish = earlier(s.due.publish, at) }

// lookUp notes what is registered of the call's function now.
func (s *session) lookUp(t *tracked) call.Function {
	f, ok := s.d.functions.Function(t.Function)
	f.Policy = s.d.cfg.Policies[t.Function].Over(f.Policy)
	t.registered, t.policy = ok, f.WithDefaults()
	t.verifies = f.Verifies && (t.policy.OnUncertain == call.UncertainVerify || t.policy.OnUncertain == call.UncertainPark)
	return f
}

// stepPublish hands over the open calls that are due.
func (s *session) stepPublish(_ context.Context, now time.Time) time.Time {
	if s.publishing {
		return time.Time{} // its answer asks again
	}
	if s.due.publish.IsZero() || now.Before(s.due.publish) {
		return s.due.publish
	}
	s.due.publish = time.Time{}
	var due []*tracked
	changed := s.d.functions.Changed() // before any look-up, so that no change is missed
	for _, t := range s.calls {
		if !t.state.Open() || !t.listed || t.published || t.busy {
			continue
		}
		if now.Before(t.publishAt) {
			s.wantPublish(t.publishAt)
			continue
		}
		if t.Function == "" {
			s.fail(t, call.ReasonInvalidName, "the function has no name")
			continue
		}
		f := s.lookUp(t)
		if !t.registered {
			s.awaitFunctions(changed)
			continue
		}
		args, refused := admit(t.Call)
		if refused == nil {
			refused = s.check(t, f, args)
		}
		if refused != nil {
			s.fail(t, refused.reason, refused.text)
			continue
		}
		t.Arguments = args
		due = append(due, t)
	}
	if len(due) > 0 {
		s.publish(due, now)
		return time.Time{}
	}
	return s.due.publish
}

// awaitFunctions wakes the session when the registered functions change.
func (s *session) awaitFunctions(changed <-chan struct{}) {
	if s.claims.awaiting {
		return
	}
	s.claims.awaiting = true
	s.async(func() func() {
		select {
		case <-s.ctx.Done():
			return nil
		case <-changed:
			return func() {
				s.claims.awaiting = false
				s.wantPublish(time.Now())
			}
		}
	})
}

// publish records what has to be on record before a publication, then publishes.
func (s *session) publish(due []*tracked, now time.Time) {
	s.publishing = true
	var moves []results.Move
	for _, t := range due {
		t.busy = true
		if t.gone || !t.tried.IsZero() && now.Sub(t.tried) > s.d.cfg.dedupeSafe() {
			// The queue would no longer recognise the same hand-over, or it is over and its
			// outcome is not to be had. The first one may have run: a new one that says so.
			t.handover++
			t.uncertain, t.gone = true, false
			t.tried = time.Time{}
			t.note = "handed over once more, as a call that may have run"
		}
		if t.state != call.Seen || t.tried.IsZero() && t.handover > 1 {
			s.moves.forget(t.Key)
			moves = append(moves, results.Move{
				Key: t.Key, To: call.Seen, Attempt: t.attempt, Handover: t.handover, Note: t.takeNote(),
			})
		}
		if t.tried.IsZero() {
			t.tried = now
		}
		s.setDeadline(t)
	}
	until := now.Add(publishTimeout)
	dispatches := make([]call.Dispatch, len(due))
	var releases []func()
	unproven := make([]bool, len(due))
	for i, t := range due {
		unproven[i] = t.unproven
		until = earlier(until, t.tried.Add(s.d.cfg.dedupeSafe())) // later, a slow retry would be stored as a second call
		if t.over == nil {
			t.over = make(chan struct{})
		}
		dispatches[i] = s.dispatch(t)
		releases = append(releases, t.releases...)
		t.releases = nil
	}
	s.async(func() func() {
		ctx, cancel := context.WithDeadline(s.p.work, until)
		defer cancel()
		if err := s.record(ctx, moves); err != nil {
			return func() { s.notPublished(due, err) }
		}
		for _, ack := range releases {
			ack()
		}
		errs := s.d.publishUnreported(ctx, dispatches, unproven)
		return func() {
			for i, t := range due {
				t.sequence, t.taken = dispatches[i].Sequence, false
				t.unproven = t.unproven && errs[i] != nil
			}
			s.published(due, errs)
		}
	})
}

// takeNote gives the note for the step that is about to be recorded.
func (t *tracked) takeNote() string {
	note := t.note
	t.note = ""
	return note
}

// record makes moves that must be stored before the session goes on.
func (s *session) record(ctx context.Context, moves []results.Move) error {
	if len(moves) == 0 {
		return nil
	}
	moved, err := s.d.store.Move(ctx, s.p.fence, moves)
	if err != nil {
		return err
	}
	for i, m := range moved {
		switch {
		case m.Err != nil:
			return m.Err
		case !m.Done:
			return fmt.Errorf("%w: %s is %q, not to become %s", errElsewhere, moves[i].Key, m.State, moves[i].To)
		}
	}
	return nil
}

// errElsewhere says that the store does not have a call where the session has it. An
// audit brings both in line.
var errElsewhere = errors.New("the record is in another state")

func (s *session) dispatch(t *tracked) call.Dispatch {
	return call.Dispatch{
		Call: t.Call, Attempt: t.attempt, Handover: t.handover,
		Nonce:     s.d.nonces.For(t.Key, call.Token(t.Function), t.attempt),
		Partition: s.p.n,
		Timeout:   time.Duration(t.policy.Timeout),
		Deadline:  t.deadline,
		Uncertain: t.uncertain, OnUncertain: t.policy.OnUncertain,
		Sequence: t.sequence, Over: t.over,
	}
}

func (s *session) published(due []*tracked, errs []error) {
	var failed []*tracked
	var failure error
	for i, t := range due {
		if t.state == call.Retrying || t.state == call.Held || t.state == call.Parked {
			// On record since before the publication, whatever became of that.
			s.enter(t, call.Seen, "", time.Now())
		}
		switch err := errs[i]; {
		case err == nil, s.d.queue.Gone(err), errors.Is(err, errReported):
			s.free(t)
			t.published = true
			if err != nil {
				s.lostSight(t, time.Now())
			}
			t.backoff = nil
			s.due.deadlines = earlier(earlier(s.due.deadlines, t.overdue()), t.tried.Add(s.d.cfg.DuplicateWindow/4))
			if t.handover > 1 {
				s.d.obs.Count(EventRepublished)
			}
		case s.d.queue.TooLarge(err):
			s.free(t)
			s.fail(t, call.ReasonTooLarge, "the call is too large to be handed to an executor: "+err.Error())
		default:
			failed, failure = append(failed, t), err
		}
	}
	s.publishing = false
	s.wantPublish(time.Now()) // for what came meanwhile
	s.wantSubmit(time.Now())  // a result may have been faster than this answer
	if len(failed) > 0 {
		s.notPublished(failed, failure)
	} else {
		s.recovered(troublePublish)
	}
}

// lostSight waits for the outcome of a hand-over that is over already. Normally it is on
// its way, at the latest when the lease of a dead owner on it runs out. When the store
// lost a record, there may be none: a retry that was recorded, or a result whose
// message was acknowledged when the API accepted it. The call is then handed over as
// one that may have run. The wait counts from the first try: owners that follow each other
// do not wait again.
func (s *session) lostSight(t *tracked, now time.Time) {
	s.log.Debug("a call was published before and is over", "turn_id", t.Turn, "call_id", t.Key.Call,
		"function", t.Function, "attempt", t.attempt)
	t.gone, t.publishAt = true, t.tried.Add(2*s.d.cfg.OutcomeLease)
	if soon := now.Add(2 * time.Second); t.publishAt.Before(soon) {
		t.publishAt = soon
	}
	s.due.deadlines = earlier(s.due.deadlines, t.publishAt)
}

// notPublished schedules another try; the hand-over may have been stored.
func (s *session) notPublished(due []*tracked, err error) {
	s.publishing = false
	if fenced(err) {
		s.p.lost()
	}
	now := time.Now()
	for _, t := range due {
		s.free(t)
		if t.backoff == nil {
			t.backoff = delays(250*time.Millisecond, 10*time.Second)
		}
		t.publishAt = now.Add(t.backoff.NextBackOff())
		s.wantPublish(t.publishAt)
	}
	s.wantSubmit(now)
	if errors.Is(err, errElsewhere) {
		s.audit()
	} else if s.p.ctx.Err() == nil {
		s.fault(troublePublish, err)
	}
}
