package property_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

var errDead = errors.New("this dispatcher is dead")

// gate is between one dispatcher and the world. A dead one has every request fail
// that has not been sent, and gets no answer to those that were; a frozen one waits.
type gate struct {
	mu     sync.Mutex
	dead   chan struct{}
	frozen chan struct{} // closed when it thaws; nil when it is not frozen
}

func newGate() *gate { return &gate{dead: make(chan struct{})} }

func (g *gate) kill() { close(g.dead) }

func (g *gate) freeze(lasts time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen == nil {
		g.frozen = make(chan struct{})
		time.AfterFunc(lasts, g.thaw)
	}
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen != nil {
		close(g.frozen)
		g.frozen = nil
	}
}

// pass waits while the dispatcher is frozen.
func (g *gate) pass(ctx context.Context) error {
	for {
		g.mu.Lock()
		frozen := g.frozen
		g.mu.Unlock()
		select {
		case <-g.dead:
			return errDead
		default:
		}
		if frozen == nil {
			return nil
		}
		select {
		case <-frozen:
		case <-g.dead:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// through makes a request through the gate.
func through[T any](ctx context.Context, g *gate, f func() (T, error)) (T, error) {
	var zero T
	if err := g.pass(ctx); err != nil {
		return zero, err
	}
	v, err := f()
	if err := g.pass(ctx); err != nil {
		return zero, err
	}
	return v, err
}

func nothing(f func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, f() }
}

// gatedAPI, gatedQueue and gatedStore are what a dispatcher sees of the world.
type gatedAPI struct {
	g   *gate
	api *service
}

func (a gatedAPI) Session(ctx context.Context, id string) (call.Session, error) {
	return through(ctx, a.g, func() (call.Session, error) { return a.api.Session(ctx, id) })
}

func (a gatedAPI) Submit(ctx context.Context, b call.Batch) error {
	_, err := through(ctx, a.g, nothing(func() error { return a.api.Submit(ctx, b) }))
	return err
}

type gatedQueue struct {
	*broker
	g *gate
}

func (q gatedQueue) Publish(ctx context.Context, ds []call.Dispatch) []error {
	errs, err := through(ctx, q.g, func() ([]error, error) { return q.broker.Publish(ctx, ds), nil })
	if err != nil {
		errs = make([]error, len(ds))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func (q gatedQueue) Consume(ctx context.Context, partition int, handle func([]call.Delivered)) error {
	return q.broker.Consume(ctx, partition, func(batch []call.Delivered) {
		if q.g.pass(ctx) != nil {
			return // delivered to a dead process
		}
		for i, ack := range batch {
			batch[i].Ack = func() {
				if q.g.pass(context.Background()) == nil {
					ack.Ack()
				}
			}
		}
		handle(batch)
	})
}

func (q gatedQueue) Cancel(ctx context.Context, key call.Key, function, reason string) error {
	_, err := through(ctx, q.g, nothing(func() error { return q.broker.Cancel(ctx, key, function, reason) }))
	return err
}

func (q gatedQueue) Bury(ctx context.Context, letter call.DeadLetter) error {
	_, err := through(ctx, q.g, nothing(func() error { return q.broker.Bury(ctx, letter) }))
	return err
}

func (q gatedQueue) Withdraw(ctx context.Context, d call.Dispatch) (bool, error) {
	return through(ctx, q.g, func() (bool, error) { return q.broker.Withdraw(ctx, d) })
}

func (q gatedQueue) Stored(ctx context.Context, d call.Dispatch) (uint64, error) {
	return through(ctx, q.g, func() (uint64, error) { return q.broker.Stored(ctx, d) })
}

func (q gatedQueue) Reported(ctx context.Context, d call.Dispatch, genuine func(call.Outcome) bool) (bool, error) {
	return through(ctx, q.g, func() (bool, error) { return q.broker.Reported(ctx, d, genuine) })
}

func (q gatedQueue) Report(ctx context.Context, d call.Dispatch, o call.Outcome) error {
	_, err := through(ctx, q.g, nothing(func() error { return q.broker.Report(ctx, d, o) }))
	return err
}

type gatedStore struct {
	results.Store
	g *gate
}
