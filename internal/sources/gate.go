package sources

import (
	"context"
	"sync"
	"time"
)

// gate keeps thousands of sessions from opening their streams at once: so many
// at a time, and so many per second.
type gate struct {
	slots    chan struct{}
	interval time.Duration

	mu   sync.Mutex
	next time.Time
}

func newGate(atOnce, perSecond int) *gate {
	return &gate{slots: make(chan struct{}, atOnce), interval: time.Second / time.Duration(perSecond)}
}

// enter waits for a turn to open a stream; leave gives it back once the stream is
// open or refused. It reports false, and nothing is to be given back, when ctx ended.
func (g *gate) enter(ctx context.Context) bool {
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	g.mu.Lock()
	now := time.Now()
	if g.next.Before(now) {
		g.next = now
	}
	turn := g.next.Sub(now)
	g.next = g.next.Add(g.interval)
	g.mu.Unlock()
	if !sleep(ctx, turn) {
		g.leave()
		return false
	}
	return true
}

func (g *gate) leave() { <-g.slots }

// hold closes the gate for d: the API asked for a pause, and it asked this client,
// not one session.
func (g *gate) hold(d time.Duration) {
	if d <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(d); g.next.Before(until) {
		g.next = until
	}
}
