package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// fail saves an error of the dispatcher's own as the call's result.
func (s *session) fail(t *tracked, reason, text string) {
	s.save(t, results.Completion{
		Key: t.Key, Function: t.Function, Attempt: t.attempt, Adopt: true,
		Result:    call.Result{Error: text, Reason: reason},
		Note:      "decided by the dispatcher: " + reason,
		OutcomeID: fmt.Sprintf("dispatcher.%s.%d", reason, t.attempt),
	}, nil)
}

// save completes one call from within the session.
func (s *session) save(t *tracked, c results.Completion, dv *call.Delivered) {
	t.busy = true
	s.completing++
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, requestTimeout)
		defer cancel()
		done, err := s.d.store.Complete(ctx, []uint64{s.p.fence}, []results.Completion{c})
		return func() {
			s.completing--
			s.free(t)
			switch {
			case err != nil:
				s.fault(troubleSave, err)
				t.busy = true // no other decision about it meanwhile
				s.later(time.Second, func() { s.save(t, c, dv) })
			case done[0].Err != nil:
				s.p.lost()
			default:
				s.recovered(troubleSave)
				s.completed(t, c, done[0], dv)
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

// fenced says that another replica owns the partition.
func fenced(err error) bool { return errors.Is(err, results.ErrFenced) }

// earlier is the earlier of two times of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
