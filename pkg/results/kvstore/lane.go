package kvstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// change is what one caller wants done to one turn. apply may run several times,
// on newer values of the turn; the last run counts.
type change struct {
	ctx   context.Context
	apply func(*edit)
	err   error
	done  chan struct{}
}

// lanes applies changes of one turn one write at a time, together when they
// arrive together, and changes of different turns in parallel.
type lanes struct {
	bucket *bucket
	clock  *clock
	config Config

	mu      sync.Mutex
	waiting map[turnID][]*change // a turn has an entry while its lane runs
	closed  bool
	running sync.WaitGroup
}

// do waits until the change was applied. It returns early when ctx ends; a
// change that was begun by then still happens.
func (l *lanes) do(ctx context.Context, id turnID, apply func(*edit)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &change{ctx: ctx, apply: apply, done: make(chan struct{})}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	waiting, busy := l.waiting[id]
	l.waiting[id] = append(waiting, c)
	if !busy {
		l.running.Go(func() { l.run(id) })
	}
	l.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lanes) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
}

// run serves a turn until nobody wants anything of it.
func (l *lanes) run(id turnID) {
	for {
		l.mu.Lock()
		changes := l.waiting[id]
		if len(changes) == 0 {
			delete(l.waiting, id)
			l.mu.Unlock()
			return
		}
		l.waiting[id] = nil
		l.mu.Unlock()

		live := changes[:0:0]
		for _, c := range changes {
			if c.err = c.ctx.Err(); c.err == nil {
				live = append(live, c)
			}
		}
		if len(live) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), l.config.FlushTimeout)
			err := l.write(ctx, id, live)
			cancel()
			for _, c := range live {
				c.err = err
			}
		}
		for _, c := range changes {
			close(c.done)
		}
	}
}

// tries bounds how often a value that others change is read and changed again.
const tries = 50

// write applies the changes to the turn, again and again until no other process
// has changed it meanwhile.
func (l *lanes) write(ctx context.Context, id turnID, changes []*change) error {
	written := map[string]bool{} // results that were put, and are not yet known to be of use
	for try := range tries {
		if err := pause(ctx, try); err != nil {
			return err
		}
		e, revision, err := l.read(ctx, id)
		if err != nil {
			return err
		}
		for _, c := range changes {
			c.apply(e)
		}
		if !e.changed {
			l.drop(ctx, e, written)
			return nil
		}
		if err := l.putBodies(ctx, e, written); err != nil {
			return err
		}
		e.boundHistories()
		err = l.bucket.put(ctx, id.key(), e.encode(), revision, e.ttl())
		if err == nil {
			l.drop(ctx, e, written)
			return nil
		}
		if !conflict(err) {
			return err
		}
	}
	return ErrContended
}

// pause waits before another try, longer the more failed.
func pause(ctx context.Context, try int) error {
	if try == 0 {
		return nil
	}
	longest := min(time.Duration(try)*2*time.Millisecond, 50*time.Millisecond)
	select {
	case <-time.After(rand.N(longest)): //nolint:gosec // jitter
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lanes) read(ctx context.Context, id turnID) (*edit, uint64, error) {
	now, err := l.clock.now(ctx)
	if err != nil {
		return nil, 0, err
	}
	got, err := l.bucket.get(ctx, id.key())
	if err != nil {
		return nil, 0, err
	}
	e := &edit{turn: newTurn(id), now: now, config: l.config, puts: map[string][]byte{}}
	if got.value != nil {
		if e.turn, err = decodeTurn(got.value); err != nil {
			return nil, 0, err
		}
		e.exists, e.created = true, got.created
	}
	return e, got.revision, nil
}

// putBodies writes the results before the turn that points to them.
func (l *lanes) putBodies(ctx context.Context, e *edit, written map[string]bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.config.Parallel)
	for key, value := range e.puts {
		if written[key] {
			continue
		}
		written[key] = true
		// Twice the life of the turn, which is prolonged while its calls are listed.
		group.Go(func() error { return l.bucket.publish(ctx, key, value, 2*l.config.ActiveTTL) })
	}
	return group.Wait()
}

// drop deletes the results that the turn does not point to. What stays because
// of an error has a time to live.
func (l *lanes) drop(ctx context.Context, e *edit, written map[string]bool) {
	for _, key := range e.drops {
		written[key] = true
	}
	for _, c := range e.calls {
		if c.body != "" {
			delete(written, e.id.bodyKey(c.call, c.body))
		}
	}
	var group errgroup.Group
	group.SetLimit(l.config.Parallel)
	for key := range written {
		group.Go(func() error { return l.bucket.remove(ctx, key) })
	}
	_ = group.Wait()
}
