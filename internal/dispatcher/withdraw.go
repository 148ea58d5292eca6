package dispatcher

import (
	"context"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// overdue is when a hand-over that nobody took is given up.
func (t *tracked) overdue() time.Time {
	at := t.tried.Add(time.Duration(t.policy.QueueTimeout))
	if t.deadline.Before(at) {
		at = t.deadline
	}
	if t.askAgain.After(at) {
		return t.askAgain
	}
	return at
}

// untaken says that the current hand-over may still lie in the queue, as far as the
// session knows, and can be taken back.
func (t *tracked) untaken() bool {
	return t.published && !t.gone && !t.taken && t.sequence != 0 && !t.deferred && t.state != call.Parked
}

// withdraw takes back a hand-over that nobody took in time. Only the queue knows
// whether an executor has it: then the session waits on, for the handler.
func (s *session) withdraw(t *tracked) {
	t.busy = true
	d := s.dispatch(t)
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, withdrawTimeout)
		defer cancel()
		withdrawn, err := s.d.queue.Withdraw(ctx, d)
		return func() {
			s.free(t)
			now := time.Now()
			s.due.deadlines = earlier(s.due.deadlines, now)
			switch {
			case !t.state.Open() || t.attempt != d.Attempt || t.handover != d.Handover:
			case err != nil:
				s.fault(troubleWithdraw, err)
				t.askAgain = now.Add(time.Second) // if it cannot be found out, the deadline decides
			case !withdrawn:
				s.recovered(troubleWithdraw)
				t.taken = true
			case t.uncertain:
				s.unsure(t, call.ReasonUnknownOutcome, fmt.Sprintf(
					"no executor took %s again in time; an earlier run may have taken effect", t.Function), nil)
			default:
				s.d.obs.Count(EventWithdrawn)
				s.fail(t, call.ReasonNoExecutor, noExecutor(t))
			}
		}
	})
}

// withdrawTimeout bounds one try to take a hand-over back.
const withdrawTimeout = 10 * time.Second

func noExecutor(t *tracked) string { return "no executor is available for " + t.Function }
