package dispatcher

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
)

// submission is a batch and its fate.
type submission struct {
	call.Batch
	calls []*tracked
	bytes int
	// notBefore holds back the next try of the very same batch.
	notBefore time.Time
	backoff   *backoff.ExponentialBackOff
	// races counts the tries that were answered with an unknown call.
	races int
	// refusedAs is the number of the last of these answers.
	refusedAs int
}

// posting is the state of the session's submissions.
type posting struct {
	running bool
	// again is a batch that has to be sent once more as it is, under its key.
	again *submission
	// plans are the parts of a refused batch, sent one by one to find the culprit.
	plans [][]*tracked
	// flowing: a POST has just returned, so what waits goes out without linger.
	flowing bool
}

// answer is what the call sends: its result, or what took its place.
func (t *tracked) answer() call.Answer {
	if t.substitute != nil {
		return call.Answer{Key: t.Key, Result: *t.substitute}
	}
	return call.Answer{Key: t.Key, Result: *t.result}
}

// sendable says whether the call has something to send now.
func (t *tracked) sendable() bool {
	return t.result != nil && !t.inBatch && !t.busy && !t.doubted &&
		(t.state == call.Succeeded || t.state == call.Failed || t.state == call.Submitted && t.resendNow)
}

// wantSubmit asks for a look at the results that are to be submitted.
func (s *session) wantSubmit(at time.Time) { s.due.submit = earlier(s.due.submit, at) }

// nextBatch composes the next submission; nil when nothing is due, with the time to
// look again.
func (s *session) nextBatch(now time.Time) (*submission, time.Time) {
	if b := s.out.again; b != nil {
		if now.Before(b.notBefore) {
			return nil, b.notBefore
		}
		s.out.again = nil
		return b, time.Time{}
	}
	for len(s.out.plans) > 0 {
		plan := slices.DeleteFunc(s.out.plans[0], func(t *tracked) bool { return s.calls[t.Key] != t || !t.sendable() })
		s.out.plans = s.out.plans[1:]
		if len(plan) > 0 {
			return s.newSubmission(plan), time.Time{}
		}
	}
	var ready []*tracked
	var next time.Time
	outstanding := map[string]bool{} // turns with calls still at work
	for _, t := range s.calls {
		switch {
		case t.state.Open():
			outstanding[t.Turn] = true
		case !t.sendable():
		case now.Before(t.retryAt):
			next = earlier(next, t.retryAt)
		case t.alone:
			return s.newSubmission([]*tracked{t}), time.Time{}
		default:
			ready = append(ready, t)
		}
	}
	if len(ready) == 0 {
		return nil, next
	}
	slices.SortFunc(ready, func(a, b *tracked) int {
		return cmp.Or(a.savedAt.Compare(b.savedAt), cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Key.Call, b.Key.Call))
	})
	b := s.newSubmission(ready)
	waiting := false
	for _, t := range b.calls {
		waiting = waiting || outstanding[t.Turn]
	}
	linger := ready[0].savedAt.Add(s.d.cfg.Linger)
	if waiting && !s.out.flowing && len(b.calls) == len(ready) && now.Before(linger) {
		return nil, earlier(next, linger)
	}
	return b, time.Time{}
}

// newSubmission takes as many of the calls as fit into one submission.
func (s *session) newSubmission(calls []*tracked) *submission {
	b := &submission{Batch: call.Batch{Session: s.id}, backoff: delays(500*time.Millisecond, 30*time.Second)}
	key := sha256.New()
	var event []byte
	for _, t := range calls {
		if len(b.calls) == s.d.cfg.BatchCount {
			break
		}
		a := t.answer()
		event = a.AppendEvent(event[:0])
		if len(b.calls) > 0 && b.bytes+len(event) > s.d.cfg.BatchBytes {
			break
		}
		b.bytes += len(event) + 1
		b.calls = append(b.calls, t)
		b.Answers = append(b.Answers, a)
		// The number of the re-send is part of the key: a service that recognises the
		// key of a result it accepted and lost must not drop the next try as well.
		fmt.Fprintf(key, "%d:%d:", t.resends, len(event))
		key.Write(event)
	}
	fmt.Fprintf(key, "%d:%s", len(s.id), s.id)
	b.IdempotencyKey = hex.EncodeToString(key.Sum(nil))
	return b
}
