package dispatcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

const (
	requestTimeout = 35 * time.Second
	// confirmAfter is how long an unanswered call has to be gone from the required
	// actions, in two looks, before its work is stopped.
	confirmAfter = 500 * time.Millisecond
)

// wantGet asks for a GET at the given time or earlier.
func (s *session) wantGet(at time.Time) {
	if s.get.due.IsZero() || at.Before(s.get.due) {
		s.get.due, s.get.unasked = at, false
	}
}

func (s *session) stepRetrieve(ctx context.Context, now time.Time) time.Time {
	if s.get.running {
		return time.Time{}
	}
	if s.get.due.IsZero() {
		if !s.watched && len(s.calls) == 0 && len(s.orphans) == 0 {
			return time.Time{}
		}
		// The watchdog: spread so that thousands of sessions do not ask at once.
		s.get.due = s.get.at.Add(s.d.cfg.Watchdog*3/4 + rand.N(s.d.cfg.Watchdog/2)) //nolint:gosec // jitter
		s.get.unasked = true
	}
	if now.Before(s.get.due) {
		return s.get.due
	}
	s.get.due = time.Time{}
	s.get.running = true
	number := s.event()
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		start := time.Now()
		got, err := s.d.api.Session(ctx, s.id)
		s.d.obs.Request("session", class(err), time.Since(start))
		return func() { s.retrieved(number, got, err) }
	})
	return time.Time{}
}

// class is the label of an API request's outcome.
func class(err error) string {
	if err == nil {
		return "ok"
	}
	return string(refusal(err).Class)
}

// refusal reads any error of the API; what is not a Refusal counts as busy.
func refusal(err error) *call.Refusal {
	if r, ok := errors.AsType[*call.Refusal](err); ok {
		return r
	}
	return &call.Refusal{Class: call.RefusedBusy, Err: err}
}

func (s *session) retrieved(number int, got call.Session, err error) {
	now := time.Now()
	s.get.running = false
	s.get.at = now
	if err != nil {
		if s.p.ctx.Err() != nil {
			return
		}
		r := refusal(err)
		if r.Class == call.RefusedGone {
			s.gone(now)
			return
		}
		if r.Class == call.RefusedAuth {
			s.d.obs.Count(EventAuthRefused)
		}
		s.fault(troubleRetrieve, err)
		s.wantGet(now.Add(max(r.RetryAfter, s.get.backoff.NextBackOff())))
		return
	}
	s.get.backoff.Reset()
	s.get.status = got.Status
	s.recovered(troubleRetrieve)
	s.log.Debug("retrieved", "status", got.Status, "calls", len(got.Calls), "tracked", len(s.calls))
	s.compare(number, now, got)
	s.compareTools(got.Tools)
}

// compare brings what is tracked in line with what the GET of that number showed.
func (s *session) compare(number int, now time.Time, got call.Session) {
	for range got.Others {
		s.d.obs.Count(EventOtherAction)
	}
	listed := make(map[call.Key]bool, len(got.Calls))
	var fresh []call.Call
	for _, c := range got.Calls {
		if listed[c.Key] {
			continue // listed twice: one call
		}
		listed[c.Key] = true
		t := s.calls[c.Key]
		switch {
		case t != nil:
			s.stillListed(t, c, number, now)
		case s.watched:
			fresh = append(fresh, c)
			if s.get.unasked { // only the watchdog's look found it
				s.d.obs.Count(EventCallMissed)
			}
		}
	}
	s.dropUnlisted(number, listed)
	for key, t := range s.calls {
		if !listed[key] {
			s.notListed(t, number, now)
		}
	}
	for key, dv := range s.orphans {
		if !listed[key] {
			delete(s.orphans, key)
			s.d.obs.Count(EventUnknownOutcome)
			s.late(dv, results.Record{})
			continue
		}
		if t := s.calls[key]; t != nil {
			s.reunite(t, dv)
		}
	}
	s.claim(fresh, now)
	s.get.done = true
}

// dropUnlisted breaks a batch up that waits to be repeated because one of its calls
// was unknown to the API, when a look at the session shows which one is not pending.
func (s *session) dropUnlisted(number int, listed map[call.Key]bool) {
	b := s.out.again
	if b == nil || b.races == 0 || number < b.refusedAs {
		return
	}
	for _, t := range b.calls {
		if !listed[t.Key] {
			t.unknown = true
			s.out.again = nil
		}
	}
	if s.out.again == nil {
		s.dissolve(b)
	}
}

func (s *session) stillListed(t *tracked, c call.Call, number int, now time.Time) {
	t.missing = time.Time{}
	if t.doubted {
		t.doubted = false
		s.wantSubmit(now)
	}
	if !t.listed && t.state.Open() {
		t.Arguments, t.listed = c.Arguments, true
		s.wantPublish(now)
	}
	switch {
	case t.state == call.Submitted && number > t.acceptedAs:
		wait := s.d.cfg.Resend << min(t.resends, 6)
		if now.Sub(t.accepted) >= wait && !t.inBatch && t.result != nil {
			s.d.obs.Count(EventResent)
			t.resends++
			t.resendNow = true
			s.wantSubmit(now)
			return
		}
		s.verifyLater(t, now)
	case t.state.Final():
		// The service showed it gone and shows it again: a stale answer, or a result
		// that it dropped after applying it. Nothing can be sent a second time.
		s.wantGet(now.Add(confirmAfter))
	}
}

// verifyLater asks for the next look at an accepted result, after a growing time:
// the service may list a call for ten seconds and more after it accepted the result.
func (s *session) verifyLater(t *tracked, now time.Time) {
	waited := now.Sub(t.accepted)
	s.wantGet(now.Add(min(max(waited, 100*time.Millisecond), 5*time.Second)))
}

func (s *session) notListed(t *tracked, number int, now time.Time) {
	switch {
	case t.busy:
		s.wantGet(now.Add(confirmAfter)) // the answer under way comes first
	case t.inBatch: // the API's answer to the batch decides
	case t.state.Final():
		delete(s.calls, t.Key)
	case t.state == call.Submitted:
		if number > t.acceptedAs {
			s.finish(t, call.Settled, "", now)
		}
	case t.unknown:
		s.finish(t, call.Obsolete, "", now)
	case t.missing.IsZero():
		t.missing = now
		s.wantGet(now.Add(confirmAfter))
	case now.Sub(t.missing) < confirmAfter*9/10:
		s.wantGet(t.missing.Add(confirmAfter)) // this look was asked for before that one
	default:
		s.cancel(t, "no longer required", now)
	}
}

// cancel ends a call that nobody waits for.
func (s *session) cancel(t *tracked, reason string, now time.Time) {
	if t.state.Open() && !t.tried.IsZero() {
		s.tellExecutors(t, reason)
	}
	s.finish(t, call.Cancelled, reason, now)
}

// tellExecutors has whoever works on the call stop.
func (s *session) tellExecutors(t *tracked, reason string) {
	key, function := t.Key, t.Function
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.d.queue.Cancel(ctx, key, function, reason); err != nil {
			s.log.Warn("executors were not told to stop", "call_id", key.Call, "error", err)
		}
		return nil
	})
}

// gone ends everything about a session that the API does not know any more.
func (s *session) gone(now time.Time) {
	s.log.Info("the session is gone", "calls", len(s.calls))
	for _, t := range s.calls {
		if t.busy || t.inBatch {
			s.wantGet(now.Add(time.Second)) // the answer under way comes first
			continue
		}
		switch {
		case t.state.Final(): // it was listed again after its end
			delete(s.calls, t.Key)
		case t.state == call.Submitted: // the API took the result, and lists nothing any more
			s.finish(t, call.Settled, "the session is gone", now)
		default:
			s.cancel(t, "the session is gone", now)
		}
	}
	for key, dv := range s.orphans {
		delete(s.orphans, key)
		dv.Ack()
	}
	s.get.status = "gone"
	s.setWatched(false)
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		if err := s.d.store.Detach(ctx, s.id); err != nil {
			s.log.Warn("a session that is gone stays on the list", "error", err)
		}
		return nil
	})
}

// claim records calls that were listed for the first time.
func (s *session) claim(fresh []call.Call, now time.Time) {
	if len(fresh) == 0 {
		return
	}
	claims := make([]results.Claim, len(fresh))
	for i, c := range fresh {
		t := &tracked{
			Call: c, listed: true, unproven: s.unproven(now), busy: true, claimed: now, begun: now, attempt: 1, handover: 1,
		}
		s.calls[c.Key] = t
		claims[i] = results.Claim{Key: c.Key, Function: c.Function, State: call.Seen}
		if s.lookUp(t); !t.registered {
			claims[i].State = call.Held
		}
	}
	s.claims.running++
	s.async(func() func() {
		// Not the partition's context: a graceful stop hands over what it claims.
		ctx, cancel := context.WithTimeout(s.p.work, requestTimeout)
		defer cancel()
		recs, err := s.d.store.Claim(ctx, s.p.fence, claims)
		return func() {
			s.claims.running--
			s.claimed(claims, recs, err)
		}
	})
}

func (s *session) claimed(claims []results.Claim, recs []results.Record, err error) {
	now := time.Now()
	if err != nil {
		for _, c := range claims {
			delete(s.calls, c.Key)
		}
		if fenced(err) {
			s.p.lost()
			return
		}
		s.fault(troubleClaim, err)
		s.wantGet(now.Add(s.claims.backoff.NextBackOff()))
		return
	}
	s.claims.backoff.Reset()
	s.recovered(troubleClaim)
	for i, r := range recs {
		t := s.calls[claims[i].Key]
		s.free(t)
		if t.state != call.Absent { // an outcome was faster than this answer, and is newer
			continue
		}
		s.reach(t, r.State, "", now)
		s.adopt(t, r, now)
		if t.state.Final() {
			s.d.obs.Count(EventRelisted)
			s.log.Warn("the session lists a call that had ended", "turn_id", t.Turn,
				"call_id", t.Key.Call, "state", string(t.state))
			s.wantGet(now.Add(confirmAfter))
		}
		if dv, ok := s.orphans[t.Key]; ok {
			s.reunite(t, dv)
		}
	}
}

// adopt takes over what the store recorded of a call.
func (s *session) adopt(t *tracked, r results.Record, now time.Time) {
	t.claimed = now.Add(-r.Age)
	t.begun = t.claimed
	t.attempt, t.handover = max(r.Attempt, 1), max(r.Handover, 1)
	s.setState(t, r.State)
	s.lookUp(t)
	switch r.State {
	case call.Held:
	case call.Seen:
		// Published or not: a repeated publication is recognised for a while.
		t.tried = now.Add(-r.Since)
	case call.Queued:
		t.tried, t.published = now.Add(-r.Since), true
	case call.Parked:
		t.tried, t.published = now.Add(-r.Since), true
	case call.Retrying:
		s.tryAgain(t, now.Add(s.d.retryDelay(t.policy, t.attempt)-r.Since))
	case call.Succeeded, call.Failed, call.Submitted:
		t.result, t.outcomeID, t.savedAt = r.Result, r.OutcomeID, now
		s.wantSubmit(now)
		if r.State == call.Submitted {
			t.accepted = now.Add(-r.Since)
			s.verifyLater(t, now)
		}
	}
	if t.state.Open() {
		if t.policy.OnUncertain == call.UncertainPark && t.attempt > 1 {
			t.begun = now.Add(-r.Since) // an operator may have had it run again long after the claim
		}
		s.setDeadline(t)
		s.wantPublish(now)
	}
}
