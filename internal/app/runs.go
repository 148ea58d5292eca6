package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/runstore"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

// both serves sessions of the Agents API and runs of the Responses API alike.
type both struct {
	sessions dispatcher.API
	runs     *runs.Engine
}

// Session retrieves a session or a run.
func (b both) Session(ctx context.Context, id string) (call.Session, error) {
	if runs.IsRun(id) {
		return b.runs.Session(ctx, id)
	}
	return b.sessions.Session(ctx, id)
}

// Submit sends tool results to a session, or stores the outputs of a run.
func (b both) Submit(ctx context.Context, batch call.Batch) error {
	if runs.IsRun(batch.Session) {
		return b.runs.Submit(ctx, batch)
	}
	return b.sessions.Submit(ctx, batch)
}

// sessionsOnly keeps runs away from a source of the Agents API; the engine tells when
// they change.
type sessionsOnly struct{ dispatcher.Source }

// Watch waits where the session is a run.
func (s sessionsOnly) Watch(ctx context.Context, session string, nudge func(trigger string)) {
	if runs.IsRun(session) {
		<-ctx.Done()
		return
	}
	s.Source.Watch(ctx, session, nudge)
}

// functions is the registry as runs know it.
type functions struct{ *queue.Registry }

// Functions are the definitions alone.
func (f functions) Functions() []call.Function {
	registered := f.Registry.Functions()
	list := make([]call.Function, len(registered))
	for i, r := range registered {
		list[i] = r.Function
	}
	return list
}

// engine opens what runs need, however long that takes.
func (d *Dispatcher) engine(ctx context.Context, p parts, registry *queue.Registry) (*runs.Engine, error) {
	cfg := runstore.Config{
		Prefix: d.opts.Queue.Prefix, Replicas: d.opts.Queue.Replicas, Storage: natsStorage(string(d.opts.Queue.Storage)),
		Keep: d.opts.RunsKeep, Logger: d.log,
	}
	waits := backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithInitialInterval(250*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0)), ctx)
	store, err := backoff.RetryNotifyWithData(func() (*runstore.Store, error) {
		try, cancel := context.WithTimeout(ctx, openTimeout)
		defer cancel()
		return runstore.Open(try, p.conn.NATS(), p.conn.JetStream(), cfg)
	}, waits, func(err error, _ time.Duration) {
		d.log.Warn("the store of runs cannot be used yet; trying until it can", "error", err)
	})
	if err != nil {
		return nil, err
	}
	engine := runs.New(
		runs.Config{Name: d.opts.Name, Partitions: d.opts.Queue.Partitions, Logger: d.log},
		runs.Parts{Store: store, Model: d.responses, Functions: functions{registry}, Notices: store, Observer: d.metrics},
	)
	d.metrics.CountRuns(engine.Driven)
	d.state.setRuns(engine, store)
	return engine, nil
}

// StartRun records a run. Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) StartRun(ctx context.Context, request json.RawMessage, key string) (runs.Run, error) {
	engine, _, err := d.state.runEngine()
	if err != nil {
		return runs.Run{}, err
	}
	return engine.Start(ctx, request, key)
}

// ShowRun gives a run. Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) ShowRun(ctx context.Context, id string) (runs.Run, error) {
	engine, _, err := d.state.runEngine()
	if err != nil {
		return runs.Run{}, err
	}
	return engine.Get(ctx, id)
}

// CancelRun asks to end a run. Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) CancelRun(ctx context.Context, id string) (runs.Run, error) {
	engine, _, err := d.state.runEngine()
	if err != nil {
		return runs.Run{}, err
	}
	return engine.Cancel(ctx, id)
}

// FollowRun calls each for the notices about a run. Before the start it fails with
// ops.ErrNotStarted.
func (d *Dispatcher) FollowRun(ctx context.Context, id string, after uint64, each func(uint64, json.RawMessage) bool) error {
	_, store, err := d.state.runEngine()
	if err != nil {
		return err
	}
	return store.Follow(ctx, id, after, each)
}

var _ ops.Runs = (*Dispatcher)(nil)
