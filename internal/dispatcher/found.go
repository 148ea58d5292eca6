package dispatcher

import (
	"context"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// maxLooks is how many look-ups of foundClaimed go on at once.
const maxLooks = 16

// foundClaimed decides when a call whose claim is all that is on record of it is handed
// over. Nobody knows whether its owner published it. If it was run and acked, its outcome
// is in the queue, where the dead owner may have a hold on it, and a server that was
// restarted meanwhile would not recognise the hand-over any more: so the outcome is looked
// for there first. While it is there, or cannot be looked for, the call waits until that
// hold has ended (ADR 0014).
//
// The store was read before the look, and from then on outcomes are saved through this
// session: one that left the queue meanwhile is known when the look is answered.
func (s *session) foundClaimed(t *tracked, now time.Time) {
	lease := s.d.cfg.OutcomeLease * 11 / 10
	t.publishAt = now.Add(lease)
	dispatch := s.dispatch(t)
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, lease)
		defer cancel()
		select {
		case s.d.looks <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		reported, err := s.d.queue.Reported(ctx, dispatch, func(call.Outcome) bool { return true })
		<-s.d.looks
		if err != nil || reported {
			return nil
		}
		return func() {
			t.publishAt = time.Now() // not zero, which would say that nobody can have published it
			s.wantPublish(t.publishAt)
		}
	})
}
