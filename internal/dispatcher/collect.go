package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// saved is a result that the store has, on its way to its session.
type saved struct {
	delivered  call.Delivered
	completion results.Completion
	completed  results.Completed
}

// collect handles a batch of outcomes of the partition: results are saved, the
// first one of a call for ever, in one go for the whole batch; everything else
// goes to the session that the call belongs to.
func (p *partition) collect(batch []call.Delivered) {
	completions := make([]results.Completion, 0, len(batch))
	origins := make([]call.Delivered, 0, len(batch))
	for _, dv := range batch {
		attempt, ok := p.check(dv)
		if !ok {
			continue
		}
		switch dv.Outcome.Kind {
		case call.Success, call.Failure:
			dv.ID = fingerprint(dv.ID, dv.Outcome.Result())
			completions = append(completions, p.d.completion(dv, attempt))
			origins = append(origins, dv)
		case call.Rerun:
			p.deliver(dv.Outcome.Session, func(s *session) { s.runAgain(dv, attempt) })
		default:
			p.deliver(dv.Outcome.Session, func(s *session) { s.notAResult(dv, attempt) })
		}
	}
	if len(completions) == 0 {
		return
	}
	done, err := p.complete(completions)
	if err != nil {
		return // the partition ends; what is not acked comes again
	}
	sessions := make(map[string][]saved)
	for i, c := range done {
		if c.Err != nil {
			p.lost()
			continue
		}
		id := completions[i].Key.Session
		sessions[id] = append(sessions[id], saved{origins[i], completions[i], c})
	}
	for id, list := range sessions {
		p.deliver(id, func(s *session) { s.savedAll(list) })
	}
}

// completion is the result that an outcome carries. An operator's is marked as such.
func (d *Dispatcher) completion(dv call.Delivered, attempt int) results.Completion {
	c := results.Completion{
		Key: dv.Outcome.Key, OutcomeID: dv.ID, Attempt: attempt,
		Result: d.acceptable(dv.Outcome.Key.Session, dv.Outcome.Result()), Note: noteFrom(dv.Outcome, string(dv.Outcome.Kind)),
	}
	if d.decided(dv) && c.Result.Reason == call.ReasonHandler {
		c.Result.Reason = call.ReasonOperator
	}
	return c
}

// decided says that an outcome is an operator's decision.
func (d *Dispatcher) decided(dv call.Delivered) bool {
	_, ok := d.nonces.CheckDecision(dv.Outcome.Key, dv.Token, dv.Outcome.Nonce)
	return ok
}

// attemptOf reports the attempt that an outcome belongs to, and false when its nonce was
// not made for this call, function and kind of outcome.
func (d *Dispatcher) attemptOf(dv call.Delivered) (attempt int, ok bool) {
	o := dv.Outcome
	if attempt, ok = d.nonces.Check(o.Key, dv.Token, o.Nonce); ok {
		return attempt, o.Kind != call.Rerun
	}
	attempt, ok = d.nonces.CheckDecision(o.Key, dv.Token, o.Nonce)
	return attempt, ok && (o.Kind == call.Success || o.Kind == call.Failure || o.Kind == call.Rerun)
}

// check buries what cannot be an outcome of this partition: wrong shape, a nonce
// that was not made for this call, function and attempt, or the wrong partition.
// It reports the attempt that the outcome belongs to.
func (p *partition) check(dv call.Delivered) (attempt int, ok bool) {
	reason, detail := "", ""
	if dv.Invalid != nil {
		reason, detail = EventInvalidOutcome, dv.Invalid.Error()
	} else if attempt, ok = p.d.attemptOf(dv); !ok {
		reason, detail = EventForgedOutcome, "the nonce does not belong to this call, function, attempt and kind of outcome"
	} else if n := call.Partition(dv.Outcome.Session, p.d.cfg.Partitions); n != p.n {
		reason, detail = EventForgedOutcome, fmt.Sprintf("the session belongs to partition %d", n)
	}
	if reason == "" {
		return attempt, true
	}
	p.d.obs.Count(reason)
	p.d.log.Warn("an outcome was refused", "partition", p.n, "subject", dv.Subject, "reason", reason, "detail", detail)
	ctx, cancel := context.WithTimeout(p.ctx, requestTimeout)
	defer cancel()
	letter := call.DeadLetter{Token: dv.Token, Reason: reason, Detail: detail, Subject: dv.Subject, Body: dv.Body}
	if err := p.d.queue.Bury(ctx, letter); err != nil {
		p.d.log.Warn("a refused outcome was not kept; it comes again", "partition", p.n, "error", err)
		return 0, false
	}
	dv.Ack()
	return 0, false
}

// complete saves results and keeps trying while the store fails: no outcome may be
// acked, and none needs to be fetched, before.
func (p *partition) complete(completions []results.Completion) ([]results.Completed, error) {
	fences := make([]uint64, len(completions))
	for i := range fences {
		fences[i] = p.fence
	}
	delay := delays(100*time.Millisecond, 2*time.Second)
	for failing := false; ; failing = true {
		done, err := p.d.store.Complete(p.ctx, fences, completions)
		if err == nil {
			return done, nil
		}
		if p.ctx.Err() != nil {
			return nil, err
		}
		if !failing {
			p.d.log.Error("results cannot be saved; they wait in their stream", "partition", p.n,
				"full", errors.Is(err, results.ErrFull), "error", err)
		}
		select {
		case <-p.ctx.Done():
			return nil, p.ctx.Err()
		case <-time.After(delay.NextBackOff()):
		}
	}
}

// savedAll takes over results that the collector saved.
func (s *session) savedAll(list []saved) {
	for _, sv := range list {
		t := s.calls[sv.completion.Key]
		if sv.completed.Verdict == results.Unknown {
			s.unknownToStore(t, sv.delivered)
			continue
		}
		if t == nil {
			rec := sv.completed.Record
			if rec.State.Final() || rec.State == call.Submitted && sv.completed.Verdict == results.Superseded {
				s.late(sv.delivered, rec)
				continue
			}
			// Recorded by an earlier owner, and not known here: the next GET decides. A store
			// that failed over may have lost that it was answered.
			t = &tracked{Call: call.Call{Key: rec.Key, Function: rec.Function}, doubted: true}
			s.calls[rec.Key] = t
			s.adopt(t, rec, time.Now())
			s.wantGet(time.Now())
		}
		s.completed(t, sv.completion, sv.completed, &sv.delivered)
	}
}

// completed takes over the store's answer about a result of call t. dv, when not nil, is
// the outcome that it came by; it is acked once the call has ended (ADR 0015).
func (s *session) completed(t *tracked, c results.Completion, done results.Completed, dv *call.Delivered) {
	now := time.Now()
	if done.Verdict == results.Saved && t.state.Open() && dv != nil {
		switch decided := s.d.decided(*dv); {
		case decided:
			s.d.obs.Count(EventDecided)
			s.tellExecutors(t, "answered by an operator")
		case c.Attempt != 0 && c.Attempt < t.attempt:
			// A late result of an earlier attempt was first; the later one works in vain.
			s.tellExecutors(t, "answered by an earlier attempt")
		}
	}
	rec := done.Record
	if done.Verdict == results.Superseded {
		if dv != nil {
			s.late(*dv, rec)
		}
		if t.state.Open() { // somebody else's result was first
			s.reach(t, rec.State, "", now)
			s.adopt(t, rec, now)
		}
		return
	}
	if t.state.Final() {
		if dv != nil {
			dv.Ack()
		}
		return
	}
	if dv != nil {
		t.keep(*dv)
	}
	if t.result != nil {
		return // a repeated outcome: only its ack is new
	}
	result := c.Result
	t.result, t.outcomeID, t.savedAt = &result, c.OutcomeID, now
	t.Arguments = nil
	s.wantSubmit(now)
	s.reach(t, rec.State, result.Reason, now)
	if rec.State == call.Submitted {
		t.accepted = now
		s.wantGet(now)
	}
}

// lateOutcome lets go of an outcome, other than a result, whose call or hand-over is over.
func (s *session) lateOutcome(dv call.Delivered) {
	s.d.obs.Count(EventLateOutcome)
	dv.Ack()
}

// unknownToStore handles a genuine outcome of which the store has no record, so the
// store lost it: the outcome's message is the second copy.
func (s *session) unknownToStore(t *tracked, dv call.Delivered) {
	if t != nil && !t.busy && (t.state.Open() && t.listed || t.result != nil) {
		s.rebuild(t, dv)
		return
	}
	s.orphaned(dv)
}

// orphaned keeps an outcome until a look at its session, or the claim under way, shows
// whether its call is still required.
func (s *session) orphaned(dv call.Delivered) {
	s.orphans[dv.Outcome.Key] = dv
	s.wantGet(time.Now())
}

// reunite takes an outcome up whose call turned out to be required.
func (s *session) reunite(t *tracked, dv call.Delivered) {
	switch attempt, _ := s.d.attemptOf(dv); {
	case dv.Outcome.Kind == call.Success, dv.Outcome.Kind == call.Failure:
		s.rebuild(t, dv)
	case t.state == call.Absent: // the claim's answer comes back here
	case dv.Outcome.Kind == call.Rerun:
		delete(s.orphans, t.Key)
		s.runAgain(dv, attempt)
	default:
		delete(s.orphans, t.Key)
		s.notAResult(dv, attempt)
	}
}

// rebuild records a listed call from its outcome.
func (s *session) rebuild(t *tracked, dv call.Delivered) {
	if t.busy {
		s.wantGet(time.Now().Add(200 * time.Millisecond)) // which comes back here
		return
	}
	delete(s.orphans, t.Key)
	if call.Token(t.Function) != dv.Token {
		dv.Ack()
		return
	}
	if t.result != nil && t.outcomeID != dv.ID { // the store lost it, the session did not
		s.restore(t)
		s.late(dv, results.Record{State: t.state, Result: t.result, OutcomeID: t.outcomeID})
		return
	}
	attempt, _ := s.d.attemptOf(dv)
	s.d.obs.Count(EventRebuilt)
	c := s.d.completion(dv, attempt)
	c.Function, c.Adopt = t.Function, true
	s.save(t, c, &dv)
}

// notAResult handles the outcomes that do not answer the model.
func (s *session) notAResult(dv call.Delivered, attempt int) {
	t := s.calls[dv.Outcome.Key]
	switch {
	case t == nil || t.state == call.Absent: // perhaps the store lost the call
		s.orphaned(dv)
		return
	case !t.state.Open() || attempt < t.attempt:
		s.lateOutcome(dv)
		return
	case t.busy:
		s.later(50*time.Millisecond, func() { s.notAResult(dv, attempt) })
		return
	case t.state == call.Parked && dv.Outcome.Kind == call.Uncertain && attempt == t.attempt:
		t.keep(dv)
		return
	case t.state == call.Parked:
		s.lateOutcome(dv) // an operator decides by now, or a result
		return
	}
	if attempt > t.attempt {
		// Its nonce is genuine, so the attempt was handed over: the store lost that record.
		s.d.obs.Count(EventRebuilt)
		t.attempt, t.handover = attempt, 1
	}
	now := time.Now()
	switch dv.Outcome.Kind {
	case call.Released:
		handover := releasedHandover(dv)
		if t.published && handover < t.handover {
			s.lateOutcome(dv) // of a hand-over that was followed by another
			return
		}
		t.releases = append(t.releases, dv.Ack)
		if handover >= t.handover { // a larger one: the store lost that record
			s.d.obs.Count(EventReleased)
			t.handover = handover + 1
			t.published, t.gone, t.tried, t.publishAt = false, false, time.Time{}, now
			s.wantPublish(now)
		}
	case call.Retry:
		s.retry(t, dv, now)
	case call.Uncertain:
		s.unsure(t, call.ReasonUnknownOutcome, fmt.Sprintf(
			"the outcome of %s is unknown: an earlier run may have taken effect, and this could not be found out (%s)",
			t.Function, dv.Outcome.Reason), &dv)
	case call.Deferred:
		t.deferred = true
		s.setDeadline(t)
		t.keep(dv) // a new owner is told by it
	}
}

// releasedHandover is the hand-over that a release is about, 0 when its id does not say.
func releasedHandover(dv call.Delivered) int {
	n, err := strconv.Atoi(dv.ID[strings.LastIndexByte(dv.ID, '.')+1:])
	if err != nil || dv.ID != dv.Outcome.ReleaseID(n) {
		return 0
	}
	return n
}
