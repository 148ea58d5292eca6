package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

const (
	publishTimeout = 40 * time.Second
	// deadlineSlack is granted on top of a call's own times, for the way back.
	deadlineSlack = 5 * time.Second
)

// stepPublish hands over the open calls that are due.
func (s *session) stepPublish(_ context.Context, now time.Time) time.Time {
	if s.publishing {
		return time.Time{}
	}
	var next time.Time
	var due []*tracked
	changed := s.d.functions.Changed() // before any look-up, so that no change is missed
	for _, t := range s.calls {
		if !t.state.Open() || !t.listed || t.published || t.busy {
			continue
		}
		if now.Before(t.publishAt) {
			next = earlier(next, t.publishAt)
			continue
		}
		if t.Function == "" {
			s.fail(t, call.ReasonInvalidName, "the function has no name")
			continue
		}
		f, registered := s.d.functions.Function(t.Function)
		if !registered {
			s.awaitFunctions(changed)
			continue
		}
		args, refused := admit(t.Call, f)
		if refused != nil {
			s.fail(t, refused.reason, refused.text)
			continue
		}
		t.Arguments = args
		due = append(due, t)
	}
	if len(due) > 0 {
		s.publish(due, now)
	}
	return next
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
			return func() { s.claims.awaiting = false }
		}
	})
}

// publish records what has to be on record before a publication, then publishes.
func (s *session) publish(due []*tracked, now time.Time) {
	s.publishing = true
	var moves []results.Move
	for _, t := range due {
		t.busy = true
		if !t.tried.IsZero() && now.Sub(t.tried) > s.d.cfg.dedupeSafe() {
			// The queue would no longer recognise the same hand-over, and the first one
			// may have run: a new hand-over that says so.
			t.handover++
			t.uncertain = true
			t.tried = time.Time{}
		}
		if t.state != call.Seen || t.tried.IsZero() && t.handover > 1 {
			moves = append(moves, results.Move{Key: t.Key, To: call.Seen, Attempt: t.attempt, Handover: t.handover})
		}
		if t.tried.IsZero() {
			t.tried = now
		}
	}
	dispatches := make([]call.Dispatch, len(due))
	var releases []func()
	for i, t := range due {
		dispatches[i] = s.dispatch(t, now)
		releases = append(releases, t.releases...)
		t.releases = nil
	}
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, publishTimeout)
		defer cancel()
		if err := s.record(ctx, moves); err != nil {
			return func() { s.notPublished(due, err) }
		}
		for _, ack := range releases {
			ack()
		}
		errs := s.d.queue.Publish(ctx, dispatches)
		return func() { s.published(due, errs) }
	})
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
	for _, m := range moved {
		if m.Err != nil {
			return m.Err
		}
	}
	return nil
}

func (s *session) dispatch(t *tracked, now time.Time) call.Dispatch {
	f, _ := s.d.functions.Function(t.Function)
	policy := f.Policy.WithDefaults()
	return call.Dispatch{
		Call: t.Call, Attempt: t.attempt, Handover: t.handover,
		Nonce:     s.d.nonces.For(t.Key, call.Token(t.Function), t.attempt),
		Partition: s.p.n,
		Timeout:   time.Duration(policy.Timeout),
		Deadline:  s.deadline(t, now),
		Uncertain: t.uncertain,
	}
}

// deadline is when the session stops waiting for an outcome of an open call.
func (s *session) deadline(t *tracked, now time.Time) time.Time {
	f, registered := s.d.functions.Function(t.Function)
	policy := f.Policy.WithDefaults()
	switch {
	case t.deferred:
		return t.claimed.Add(s.d.cfg.DeferredTimeout)
	case !registered && t.tried.IsZero():
		return t.claimed.Add(s.d.cfg.UnknownAfter)
	case t.tried.IsZero():
		return now.Add(time.Duration(policy.QueueTimeout + policy.Timeout))
	default:
		return t.tried.Add(time.Duration(policy.QueueTimeout+policy.Timeout) + deadlineSlack)
	}
}

func (s *session) published(due []*tracked, errs []error) {
	var failed []*tracked
	var failure error
	for i, t := range due {
		switch err := errs[i]; {
		case err == nil:
			t.busy = false
			t.published = true
			t.backoff = nil
			if t.handover > 1 {
				s.d.obs.Count(EventRepublished)
			}
		case s.d.queue.TooLarge(err):
			t.busy = false
			s.fail(t, call.ReasonTooLarge, "the call is too large to be handed to an executor: "+err.Error())
		default:
			failed, failure = append(failed, t), err
		}
	}
	s.publishing = false
	if len(failed) > 0 {
		s.notPublished(failed, failure)
	} else {
		s.recovered(troublePublish)
	}
}

// notPublished schedules another try; the hand-over may have been stored.
func (s *session) notPublished(due []*tracked, err error) {
	s.publishing = false
	if errors.Is(err, results.ErrFenced) {
		s.p.lost()
	}
	now := time.Now()
	for _, t := range due {
		t.busy = false
		if t.backoff == nil {
			t.backoff = delays(250*time.Millisecond, 10*time.Second)
		}
		t.publishAt = now.Add(t.backoff.NextBackOff())
	}
	if s.p.ctx.Err() == nil {
		s.fault(troublePublish, err)
	}
}

// stepDeadlines answers calls that nobody took or finished in time, and puts on
// record what has been in the queue for long.
func (s *session) stepDeadlines(_ context.Context, now time.Time) time.Time {
	var next time.Time
	for _, t := range s.calls {
		if !t.state.Open() || t.busy || !t.listed && !t.published {
			continue
		}
		deadline := s.deadline(t, now)
		if !now.Before(deadline) {
			if !t.tried.IsZero() {
				s.fail(t, call.ReasonDeadline, fmt.Sprintf(
					"no outcome of %s arrived in time; it is unknown whether it took effect", t.Function))
			} else {
				s.fail(t, call.ReasonNoExecutor, fmt.Sprintf("no executor is available for %s", t.Function))
			}
			continue
		}
		next = earlier(next, deadline)
		if t.published && t.state == call.Seen {
			// Beyond the duplicate window a later owner could not find out by publishing
			// again whether the call is in the queue (ADR 0005).
			mark := t.tried.Add(s.d.cfg.DuplicateWindow / 4)
			if now.Before(mark) {
				next = earlier(next, mark)
				continue
			}
			s.enter(t, call.Queued, "", now)
			s.moves.add(results.Move{Key: t.Key, To: call.Queued, Attempt: t.attempt, Handover: t.handover}, nil, now)
		}
	}
	return next
}

// fail saves an error of the dispatcher's own as the call's result.
func (s *session) fail(t *tracked, reason, text string) {
	s.save(t, results.Completion{
		Key: t.Key, Function: t.Function, Attempt: t.attempt, Adopt: true,
		Result:    call.Result{Error: text, Reason: reason},
		OutcomeID: fmt.Sprintf("dispatcher.%s.%d", reason, t.attempt),
	}, nil)
}

// save completes one call from within the session.
func (s *session) save(t *tracked, c results.Completion, acks []func()) {
	t.busy = true
	s.completing++
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, requestTimeout)
		defer cancel()
		done, err := s.d.store.Complete(ctx, []uint64{s.p.fence}, []results.Completion{c})
		return func() {
			s.completing--
			t.busy = false
			switch {
			case err != nil:
				s.fault(troubleSave, err)
				t.busy = true // no other decision about it meanwhile
				s.later(time.Second, func() { s.save(t, c, acks) })
			case done[0].Err != nil:
				s.p.lost()
			default:
				s.recovered(troubleSave)
				s.completed(t, c, done[0], acks)
			}
		}
	})
}

// later has f run in the session's goroutine after a delay.
func (s *session) later(delay time.Duration, f func()) {
	s.async(func() func() {
		select {
		case <-s.ctx.Done():
			return nil
		case <-time.After(delay):
			return f
		}
	})
}

// earlier is the earlier of two times of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
