//go:build unix

package chaos

import (
	"context"
	"time"

	"github.com/callfan/callfan/internal/simulator"
)

// watch notes when calls are listed and answered, until ctx ends.
func (w *workload) watch(ctx context.Context) {
	for {
		w.look(time.Now())
		if !sleep(ctx, 200*time.Millisecond) {
			return
		}
	}
}

// look takes over the state of every session that has a turn, and says how many calls have no answer.
func (w *workload) look(now time.Time) (open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.sessions {
		if len(c.open) == 0 || !c.posted {
			open += len(c.open)
			continue
		}
		results, err := w.api.sim.Results(c.id)
		if err != nil {
			open += len(c.open)
			continue
		}
		byNumber := make(map[string][]simulator.Result, len(c.open))
		for _, r := range results[max(0, len(results)-2*len(c.open)-64):] { // the latest turn's
			n := numberOf(r.Arguments)
			byNumber[n] = append(byNumber[n], r)
		}
		left := 0
		for _, p := range c.open {
			if list := byNumber[p.number]; len(list) > 0 {
				p.update(c.id, list[0], now)
				p.seen = len(list)
			}
			if p.answered.IsZero() {
				left++
			}
		}
		open += left
		if left == 0 {
			c.open = nil
		}
	}
	return open
}

func (p *plannedCall) update(session string, r simulator.Result, now time.Time) {
	p.key = session + "/" + r.TurnID + "/" + r.CallID
	if p.listed.IsZero() {
		p.listed = now
	}
	if r.Answered && p.answered.IsZero() {
		p.answered, p.success = now, r.Success
		p.text = string(r.Output)
		if !r.Success {
			p.text = string(r.Error)
		}
	}
}
