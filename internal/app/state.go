package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/runstore"
	"github.com/callfan/callfan/internal/webhooks"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results"
)

// state is how far a dispatcher has come, for those who ask from outside.
type state struct {
	mu       sync.Mutex
	door     *ops.Server
	conn     *queue.Conn
	store    results.Store
	storeErr error
	running  *dispatcher.Dispatcher
	registry *queue.Registry
	runs     *runs.Engine
	runStore *runstore.Store
	webhooks *webhooks.Server
	// joined: the leases were renewed at least once.
	joined bool
	begun  chan struct{}
}

func (s *state) init() { s.begun = make(chan struct{}) }

func (s *state) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *state) setDoor(door *ops.Server)       { s.set(func() { s.door = door }) }
func (s *state) setConn(conn *queue.Conn)       { s.set(func() { s.conn = conn }) }
func (s *state) setStore(st results.Store)      { s.set(func() { s.store = st }) }
func (s *state) setWebhooks(w *webhooks.Server) { s.set(func() { s.webhooks = w }) }
func (s *state) noStore(err error)              { s.set(func() { s.storeErr = err }) }
func (s *state) owned()                         { s.set(func() { s.joined = true }) }

func (s *state) started(d *dispatcher.Dispatcher, r *queue.Registry) {
	s.set(func() { s.running, s.registry = d, r })
	close(s.begun)
}

func (s *state) setRuns(e *runs.Engine, st *runstore.Store) {
	s.set(func() { s.runs, s.runStore = e, st })
}

func (s *state) stopping() {
	s.set(func() {
		if s.door != nil {
			s.door.Stopping()
		}
	})
}

// dispatcher is the running one, or ops.ErrNotStarted.
func (s *state) dispatcher() (*dispatcher.Dispatcher, *queue.Registry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil, nil, ops.ErrNotStarted
	}
	return s.running, s.registry, nil
}

// runEngine is the running one, or ops.ErrNotStarted.
func (s *state) runEngine() (*runs.Engine, *runstore.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil, nil, ops.ErrNotStarted
	}
	return s.runs, s.runStore, nil
}

// checks are the conditions of readiness.
func (d *Dispatcher) checks() []ops.Check {
	return []ops.Check{
		{Name: "nats", Run: d.state.checkNATS},
		{Name: "store", Run: d.state.checkStore},
		{Name: "partitions", Run: d.state.checkPartitions},
	}
}

func (s *state) checkNATS(ctx context.Context) error {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn == nil {
		return errors.New("not connected to NATS")
	}
	return conn.Ready(ctx)
}

func (s *state) checkStore(ctx context.Context) error {
	s.mu.Lock()
	store, err := s.store, s.storeErr
	s.mu.Unlock()
	switch {
	case store != nil:
		return store.Ping(ctx)
	case err != nil:
		return fmt.Errorf("not open yet: %w", err)
	default:
		return errors.New("not open yet")
	}
}

func (s *state) checkPartitions(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.joined {
		return errors.New("this replica has not joined the dispatchers yet")
	}
	return nil
}

// Ready says what is missing for the dispatcher to do its work; nil when nothing is.
func (d *Dispatcher) Ready(ctx context.Context) error {
	var errs []error
	for _, check := range d.checks() {
		if err := check.Run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", check.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Addr is the host:port of health, metrics and the admin API; empty without, and
// before Run has opened it.
func (d *Dispatcher) Addr() string {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	if d.state.door == nil {
		return ""
	}
	return d.state.door.Addr()
}

// Started is closed once sessions can be attached.
func (d *Dispatcher) Started() <-chan struct{} { return d.state.begun }

// Metrics are the dispatcher's own.
func (d *Dispatcher) Metrics() *ops.Metrics { return d.metrics }
