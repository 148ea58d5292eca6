package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// raceSchedule is what every official SDK waits before it repeats a result that
// was refused because the call is not registered yet.
var raceSchedule = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond}

const (
	authDelay = 30 * time.Second
	// conflictLimit is how often a result that conflicts while its call stays listed
	// is tried before the call is given up.
	conflictLimit = 5
)

// stepSubmit sends one submission at a time.
func (s *session) stepSubmit(_ context.Context, now time.Time) time.Time {
	if s.out.running || s.p.ctx.Err() != nil {
		return time.Time{} // its answer asks again
	}
	if s.due.submit.IsZero() || now.Before(s.due.submit) {
		return s.due.submit
	}
	b, next := s.nextBatch(now)
	s.out.flowing = false
	s.due.submit = next
	if b == nil {
		return next
	}
	for _, t := range b.calls {
		t.inBatch = true
	}
	s.out.running = true
	s.async(func() func() {
		// Not the partition's context: a graceful stop finishes what is on its way.
		ctx, cancel := context.WithTimeout(s.p.work, requestTimeout)
		defer cancel()
		start := time.Now()
		err := s.d.api.Submit(ctx, b.Batch)
		s.d.obs.Request("submit", class(err), time.Since(start))
		return func() {
			s.out.running = false
			s.out.flowing = true
			s.wantSubmit(time.Now())
			if err == nil {
				s.accepted(b, time.Now())
				return
			}
			s.refused(b, refusal(err), time.Now())
		}
	})
	return time.Time{}
}

// accepted notes that the API took the batch, which does not mean applied.
func (s *session) accepted(b *submission, now time.Time) {
	s.recovered(troubleSubmit)
	s.d.obs.Batch(len(b.calls), b.bytes)
	number := s.event()
	for _, t := range b.calls {
		t.inBatch, t.alone, t.resendNow = false, false, false
		t.accepted, t.acceptedAs, t.refusals, t.retryAt = now, number, 0, time.Time{}
		if t.state == call.Submitted {
			continue
		}
		s.enter(t, call.Submitted, t.answer().Result.Reason, now)
		// The outcome's message stays until the session shows that the result was
		// applied: an accepted result can be lost, and so can the store (ADR 0015).
		s.moves.add(results.Move{Key: t.Key, To: call.Submitted, Note: b.note("accepted", t)}, nil, now)
	}
	s.wantGet(now)
}

// refused decides what a refusal means for each call of the batch.
func (s *session) refused(b *submission, r *call.Refusal, now time.Time) {
	named := s.named(b, r)
	s.noteRefusal(b, r, now)
	switch r.Class {
	case call.RefusedAuth:
		s.d.obs.Count(EventAuthRefused)
		s.fault(troubleSubmit, r)
		s.again(b, now.Add(max(authDelay, r.RetryAfter)))
	case call.RefusedGone:
		s.dissolve(b)
		for _, t := range b.calls {
			t.retryAt = now.Add(time.Second) // the look at the session comes first
		}
		s.wantGet(now)
	case call.RefusedUnknownCall:
		s.refusedUnknown(b, named, now)
	case call.RefusedConflict:
		if named == nil {
			s.bisect(b, now)
			return
		}
		s.dissolve(b)
		s.conflicted(named, now)
	case call.RefusedInvalid, call.RefusedTooLarge:
		if named == nil {
			s.bisect(b, now)
			return
		}
		s.dissolve(b)
		s.replace(named, r, now)
	default:
		s.fault(troubleSubmit, r)
		s.again(b, now.Add(max(r.RetryAfter, b.backoff.NextBackOff())))
	}
}

// named is the call that a refusal is about: the one it names, or the only one.
func (s *session) named(b *submission, r *call.Refusal) *tracked {
	if len(b.calls) == 1 {
		return b.calls[0]
	}
	if i := slices.IndexFunc(b.calls, func(t *tracked) bool { return r.CallID != "" && t.Key.Call == r.CallID }); i >= 0 {
		return b.calls[i]
	}
	return nil
}

// again keeps the batch to be sent once more as it is, under the same key.
func (s *session) again(b *submission, at time.Time) {
	b.notBefore = at
	s.out.again = b
}

// dissolve lets the calls of a batch be batched anew.
func (s *session) dissolve(b *submission) {
	for _, t := range b.calls {
		t.inBatch = false
	}
}

// bisect sends the halves of a refused batch that does not say which call it is about.
func (s *session) bisect(b *submission, now time.Time) {
	s.dissolve(b)
	half := len(b.calls) / 2
	s.out.plans = append(s.out.plans, b.calls[:half], b.calls[half:])
	s.wantGet(now)
}

// refusedUnknown follows the race schedule, then isolates the call. A look at the
// session tells meanwhile which calls are not pending any more.
func (s *session) refusedUnknown(b *submission, named *tracked, now time.Time) {
	b.refusedAs = s.event()
	s.wantGet(now)
	if b.races < len(raceSchedule) {
		b.races++
		s.again(b, now.Add(raceSchedule[b.races-1]))
		return
	}
	if named == nil {
		s.bisect(b, now)
		return
	}
	s.dissolve(b)
	s.isolate(named, now, time.Second)
	named.unknown = true
}

// isolate makes a call travel alone, later, so that it holds up no other.
func (s *session) isolate(t *tracked, now time.Time, first time.Duration) {
	t.alone = true
	t.retryAt = now.Add(min(first<<min(t.refusals, 5), 30*time.Second))
	t.refusals++
	s.wantGet(now)
}

// conflicted handles a 409, which is final for a result: the API has another one, or
// the turn is over. The session shows whether the call is still pending.
func (s *session) conflicted(t *tracked, now time.Time) {
	t.unknown = true
	if t.refusals >= conflictLimit {
		s.log.Error("the API has a different result for a call that it still lists; giving up",
			"turn_id", t.Turn, "call_id", t.Key.Call)
		s.finish(t, call.Obsolete, "conflict", now)
		return
	}
	s.isolate(t, now, 2*time.Second)
}

// replace answers with an error in place of a result that the API does not take.
// The result itself stays saved, and goes to the dead letters for the operator.
func (s *session) replace(t *tracked, r *call.Refusal, now time.Time) {
	if t.substitute != nil {
		// Nothing better can be said. The call stays visible, and is tried for as long
		// as the session lists it.
		if t.refusals == 0 {
			s.log.Error("the API refuses even an error in place of a result",
				"turn_id", t.Turn, "call_id", t.Key.Call, "function", t.Function, "error", r)
		}
		s.isolate(t, now, 2*time.Second)
		return
	}
	s.d.obs.Count(EventSubstituted)
	s.log.Warn("the API refuses a result; an error is sent in its place",
		"turn_id", t.Turn, "call_id", t.Key.Call, "function", t.Function, "error", r)
	body := t.answer().AppendEvent(nil)
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		letter := call.DeadLetter{Token: call.Token(t.Function), Reason: call.ReasonRefused, Detail: r.Error(), Body: body}
		if err := s.d.queue.Bury(ctx, letter); err != nil {
			s.log.Warn("a refused result was not kept", "call_id", t.Key.Call, "error", err)
		}
		return nil
	})
	t.substitute = &call.Result{
		Reason: call.ReasonRefused,
		Error:  fmt.Sprintf("the result of %s was refused by the API (HTTP %d)", t.Function, r.Status),
	}
	if r.Class == call.RefusedTooLarge {
		t.substitute = &call.Result{Reason: call.ReasonTooLarge, Error: fmt.Sprintf("result too large (%d bytes)", len(body))}
	}
}
