package executor

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// defaultAckWait is assumed when the binding states no lease.
	defaultAckWait = 30 * time.Second
	// doubtFor is how long it takes at most to read what arrived while the process
	// stood still.
	doubtFor = time.Second
)

// leases extends the leases of all held calls from one goroutine, whatever the
// handlers do.
type leases struct {
	log *slog.Logger

	mu      sync.Mutex
	ackWait time.Duration
	held    map[*lease]struct{}
	changed chan struct{}
	// beaten is when the process was last seen to be at work; doubt lasts for a while
	// after it stood still for so long that leases may have run out.
	beaten, doubt time.Time
}

// lease is the hold on one delivered call.
type lease struct {
	owner *leases
	call  taken
	until time.Time
}

func newLeases(log *slog.Logger) *leases {
	return &leases{log: log, ackWait: defaultAckWait, held: make(map[*lease]struct{}), changed: make(chan struct{}, 1)}
}

// setAckWait takes over the length of the lease that a binding states.
func (l *leases) setAckWait(d time.Duration) {
	if d <= 0 {
		d = defaultAckWait
	}
	l.mu.Lock()
	l.ackWait = d
	if l.beaten.IsZero() {
		l.beaten = time.Now() // no call comes before this: a standstill that begins before the first beat shows, too
	}
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// hold keeps extending the lease of t until then, or until drop.
func (l *leases) hold(t taken, until time.Time) *lease {
	h := &lease{owner: l, call: t, until: until}
	l.mu.Lock()
	l.held[h] = struct{}{}
	l.mu.Unlock()
	return h
}

// extend holds the lease until then, if that is later.
func (h *lease) extend(until time.Time) {
	h.owner.mu.Lock()
	if until.After(h.until) {
		h.until = until
	}
	h.owner.mu.Unlock()
}

func (h *lease) drop() {
	h.owner.mu.Lock()
	delete(h.owner.held, h)
	h.owner.mu.Unlock()
}

// run extends the leases every third of AckWait until ctx ends.
func (l *leases) run(ctx context.Context) {
	for {
		l.mu.Lock()
		tick := time.NewTimer(l.ackWait / 3)
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-l.changed:
			tick.Stop()
			l.beat()
		case <-tick.C:
			l.beat()
		}
	}
}

// doubtful says that a call which is about to be started may be with another executor:
// this process stood still (SIGSTOP, a paused container, a starved machine) for most of a
// lease, and what was delivered before is only read now. Its delivery count was true
// when it was sent (ADR 0012).
func (l *leases) doubtful() bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alive(now)
	return now.Before(l.doubt)
}

// late says that a call which was on its way for so long may be with another executor: its
// lease began when the server sent it. Half a lease is left for what comes until the
// first renewal arrives.
func (l *leases) late(transit time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return transit > l.ackWait/2
}

// alive notes that the process is at work. Beats come every third of AckWait.
func (l *leases) alive(now time.Time) {
	if !l.beaten.IsZero() && now.Sub(l.beaten) > l.ackWait*9/10 {
		l.doubt = now.Add(doubtFor)
	}
	l.beaten = now
}

func (l *leases) beat() {
	now := time.Now()
	l.mu.Lock()
	l.alive(now)
	due := make([]taken, 0, len(l.held))
	for h := range l.held {
		if now.Before(h.until) {
			due = append(due, h.call)
		}
	}
	l.mu.Unlock()
	for _, t := range due {
		if err := t.InProgress(); err != nil {
			l.log.Debug("lease was not extended", append(logKeys(t.Dispatch()), "error", err)...)
		}
	}
}
