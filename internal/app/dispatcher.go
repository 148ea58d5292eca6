package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/responses"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/schema"
	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results"
)

// closeTimeout bounds the closing of each part.
const closeTimeout = 8 * time.Second

// Dispatcher is a dispatcher with everything around it.
type Dispatcher struct {
	opts Options
	log  *slog.Logger
	api  *agents.Client
	// responses is the other API, which runs use.
	responses *responses.Client
	metrics   *ops.Metrics
	state     state
	closes    closes
}

// New checks the options and the files that they name. It opens nothing; its errors
// are about the options.
func New(opts Options) (*Dispatcher, error) {
	opts = opts.withDefaults()
	api, err := agents.New(opts.API)
	if err = errors.Join(err, opts.validate()); err != nil {
		return nil, err
	}
	model, err := responses.New(responses.Config{Config: opts.API})
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{opts: opts, log: opts.Logger, api: api, responses: model, metrics: ops.NewMetrics(opts.Version)}
	d.state.init()
	return d, nil
}

// Run opens everything, serves until ctx ends, and closes everything. It waits for
// NATS and the store as long as it takes. When ctx ends, no new calls are claimed,
// submissions under way are finished, and the partitions are given to others; all
// of that is bounded by Dispatcher.StopTimeout.
//
// The error is nil after a stop in order. It must be called once.
func (d *Dispatcher) Run(ctx context.Context) (err error) {
	d.log.Info("starting", "name", d.opts.Name, "version", d.opts.Version)
	defer func() {
		err = errors.Join(err, d.closes.run(closeTimeout))
		if err == nil {
			d.log.Info("stopped", "name", d.opts.Name)
		}
	}()
	d.closes.push("API client", func(context.Context) error { d.api.Close(); d.responses.Close(); return nil })
	if err := d.openDoor(); err != nil {
		return err
	}
	parts, err := d.open(ctx)
	if ctx.Err() != nil {
		return nil // asked to stop before it could start
	}
	if err != nil {
		return err
	}
	return d.serve(ctx, parts)
}

// openDoor serves the operators first: they want to see what the rest waits for.
func (d *Dispatcher) openDoor() error {
	if d.opts.Listen == "" {
		return nil
	}
	server, err := ops.New(ops.Config{
		Listen: d.opts.Listen, AdminToken: d.opts.AdminToken, Checks: d.checks(), Admin: d,
		Metrics: d.metrics.Handler(), Logger: d.log,
	})
	if err != nil {
		return err
	}
	d.state.setDoor(server)
	d.closes.push("operators' server", server.Close)
	return nil
}

// parts are what the sessions are served with.
type parts struct {
	conn   *queue.Conn
	store  results.Store
	secret []byte
}

// serve runs the dispatcher until ctx ends, and stops it.
func (d *Dispatcher) serve(ctx context.Context, p parts) error {
	// Executors are answered until the dispatcher has stopped.
	desk, closeDesk := context.WithCancel(context.WithoutCancel(ctx))
	d.closes.push("registry", func(context.Context) error { closeDesk(); return nil })
	observer := d.observers()
	arguments := &schema.Validator{Logger: d.log}
	registry, err := p.conn.ServeRegistry(desk, queue.WithAcceptance(arguments.Accept), queue.WithRepairs(counted(observer)))
	if err != nil {
		return err
	}
	d.serveAdvisories(desk, p.conn)
	engine, err := d.engine(ctx, p, registry)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // asked to stop before it could start
	}
	if err != nil {
		return err
	}
	cfg := d.opts.Dispatcher
	cfg.Secret = p.secret
	cfg.Observer = observer
	running, err := dispatcher.New(cfg, planted(dispatcher.Parts{
		API: both{d.api, engine}, Queue: p.conn, Store: p.store, Functions: registry, Source: d.source(),
		Arguments: arguments, Files: runs.IsRun,
	}))
	if err != nil {
		return err
	}
	if err := p.conn.ServeOutcomes(desk, running.Standing); err != nil {
		return err
	}
	d.metrics.CountParked(running.Parked)
	if err := d.openWebhooks(p.conn, running, engine.Finished); err != nil {
		return err
	}
	d.state.started(running, registry)
	d.log.Info("running", "name", d.opts.Name)

	var tasks sync.WaitGroup
	tasks.Go(func() { err = running.Run(ctx) })
	tasks.Go(func() { engine.Run(ctx, running) })
	tasks.Go(func() { d.attachSessions(ctx, running) })
	tasks.Go(func() { d.followFile(ctx, running) })
	tasks.Go(func() { d.pollSelectors(ctx, running) })
	<-ctx.Done()
	d.log.Info("stopping", "name", d.opts.Name, "timeout", d.opts.Dispatcher.StopTimeout)
	d.state.stopping()
	// Submissions, hand-overs and the release of the partitions have their own
	// bounds; this is the last one.
	bound := 3*d.opts.Dispatcher.StopTimeout + time.Second
	done := make(chan struct{})
	go func() { tasks.Wait(); close(done) }()
	select {
	case <-done:
		return err
	case <-time.After(bound):
		return fmt.Errorf("the dispatcher did not stop within %v; partitions are free when their leases run out", bound)
	}
}

func (d *Dispatcher) source() dispatcher.Source {
	if d.opts.NoStream {
		return nil
	}
	return sessionsOnly{sources.NewStream(d.api, sources.StreamConfig{Logger: d.log})}
}
