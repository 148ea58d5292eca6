package dispatcher

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callfan/callfan/pkg/results"
)

// partition is the work on one owned partition: its sessions, and the outcomes
// that arrive for them.
type partition struct {
	d     *Dispatcher
	n     int
	fence uint64
	began time.Time
	// until is when the lease runs out, in Unix nanoseconds of the local clock.
	until atomic.Int64
	// fenced: a write was refused because another replica owns the partition.
	fenced atomic.Bool

	// ctx ends when the partition stops; work, which submissions run under, ends
	// with it or, in a graceful stop, when they are done.
	ctx, work     context.Context
	cancel, abort context.CancelFunc
	graceful      atomic.Bool
	wg            sync.WaitGroup

	attachedChanged chan struct{}

	mu       sync.Mutex
	sessions map[string]*session
}

// infoTimeout bounds the wait for sessions to describe themselves.
const infoTimeout = 2 * time.Second

func newPartition(d *Dispatcher, l results.Lease, until time.Time) *partition {
	p := &partition{
		d: d, n: l.Partition, fence: l.Fence, began: time.Now(),
		attachedChanged: make(chan struct{}, 1), sessions: map[string]*session{},
	}
	p.until.Store(until.UnixNano())
	p.work, p.abort = context.WithCancel(context.Background())
	p.ctx, p.cancel = context.WithCancel(p.work)
	return p
}

func (p *partition) start() {
	p.wg.Go(p.followAttached)
	p.wg.Go(func() {
		if err := p.d.queue.Consume(p.ctx, p.n, p.collect); err != nil && p.ctx.Err() == nil {
			p.d.log.Error("outcomes are no longer consumed", "partition", p.n, "error", err)
			p.fenced.Store(true) // give the partition up rather than stand still
		}
	})
}

// stop ends the work and waits for it.
func (p *partition) stop(graceful bool) {
	p.graceful.Store(graceful)
	p.cancel()
	if graceful {
		defer time.AfterFunc(p.d.cfg.StopTimeout, p.abort).Stop()
	} else {
		p.abort()
	}
	p.wg.Wait()
	p.abort()
}

// lost notes that another replica owns the partition; the ownership loop stops it.
func (p *partition) lost() { p.fenced.Store(true) }

// followAttached keeps the set of watched sessions equal to the store's list.
func (p *partition) followAttached() {
	poll := time.NewTicker(p.d.cfg.AttachPoll)
	defer poll.Stop()
	version, failing := "", false
	var known []string
	for {
		ids, v, err := p.d.store.Attached(p.ctx, p.n, version)
		switch {
		case err != nil:
			if !failing && p.ctx.Err() == nil {
				p.d.log.Warn("cannot list the watched sessions", "partition", p.n, "error", err)
			}
		case v == results.NeverWritten && version != results.NeverWritten && len(known) > 0:
			p.restoreAttached(known)
		case v != version:
			version, known = v, ids
			p.setAttached(ids)
		}
		failing = err != nil
		select {
		case <-p.ctx.Done():
			return
		case <-poll.C:
		case <-p.attachedChanged:
		}
	}
}

// restoreAttached puts the list of watched sessions back into a store that lost it: an
// empty list that somebody wrote has a version.
func (p *partition) restoreAttached(ids []string) {
	p.d.log.Warn("the store lost the list of watched sessions; it is restored", "partition", p.n, "sessions", len(ids))
	if err := p.d.store.Attach(p.ctx, ids...); err != nil {
		p.d.log.Warn("the list of watched sessions was not restored; trying on", "partition", p.n, "error", err)
		return
	}
	p.d.obs.Count(EventListRestored)
}

func (p *partition) setAttached(ids []string) {
	want := make(map[string]bool, len(ids))
	for _, id := range ids {
		want[id] = true
		p.deliver(id, func(s *session) { s.setWatched(true) })
	}
	p.mu.Lock()
	var gone []*session
	for id, s := range p.sessions {
		if !want[id] {
			gone = append(gone, s)
		}
	}
	p.mu.Unlock()
	for _, s := range gone {
		s.post(func() { s.setWatched(false) })
	}
}

// deliver has f run in the session's goroutine.
func (p *partition) deliver(id string, f func(*session)) {
	for {
		s := p.session(id)
		if s.post(func() { f(s) }) {
			return
		}
		// It ended between the two lines above; the next look-up makes a new one.
	}
}

// session is the session's goroutine, started when it is new.
func (p *partition) session(id string) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[id]
	if s == nil {
		s = newSession(p, id)
		p.sessions[id] = s
		p.wg.Go(func() { s.run(p.ctx) })
	}
	return s
}

func (p *partition) lookup(id string) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[id]
}

// forget removes an idle session, unless something arrived for it meanwhile.
func (p *partition) forget(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.close() {
		return false
	}
	delete(p.sessions, s.id)
	return true
}

// all are the sessions that are served now.
func (p *partition) all() []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.sessions))
}

func (p *partition) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions)
}

func (p *partition) infos() []SessionInfo {
	sessions := p.all()
	answers := make(chan SessionInfo, len(sessions))
	asked := 0
	for _, s := range sessions {
		if s.post(func() { answers <- s.describe() }) {
			asked++
		}
	}
	infos := make([]SessionInfo, 0, asked)
	timeout := time.After(infoTimeout)
	for len(infos) < asked {
		select {
		case info := <-answers:
			infos = append(infos, info)
			continue
		case <-timeout: // those that stand still are missing
		}
		break
	}
	slices.SortFunc(infos, func(a, b SessionInfo) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	return infos
}
