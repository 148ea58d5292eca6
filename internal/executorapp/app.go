package executorapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/callfan/callfan/internal/functionfile"
	"github.com/callfan/callfan/pkg/executor"
)

// App is a generic executor that is ready to run.
type App struct {
	ex       *executor.Executor
	metrics  *metrics
	listener net.Listener // nil without --metrics-listen
	log      *slog.Logger
}

// New reads the functions file and checks every setting; it opens nothing but the
// port for metrics. Its errors are about the user's input.
func New(s Settings, version string, log *slog.Logger) (*App, error) {
	file, err := functionfile.Load(s.File)
	if err != nil {
		return nil, err
	}
	stop := s.StopTimeout
	if stop == 0 {
		stop = -1 // to the executor zero means the default
	}
	a := &App{metrics: newMetrics(version), log: log}
	a.ex, err = executor.New(executor.Config{
		Queue: s.queue(), Pool: file.Pool, Concurrency: s.Concurrency, ID: s.Name, Version: cmp.Or(file.Version, version), Language: file.Language(),
		StopTimeout: stop, Observer: a.metrics, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	if err := file.Add(a.ex); err != nil {
		return nil, err
	}
	if s.Check || s.Register || s.MetricsListen == "" {
		return a, nil
	}
	if a.listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.MetricsListen); err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w", err)
	}
	return a, nil
}

// healthStop bounds the end of requests for health and metrics.
const healthStop = 2 * time.Second

// Run serves until ctx is cancelled and stops in order. Health is served to the end,
// so that a probe sees the stop.
func (a *App) Run(ctx context.Context) error {
	if a.listener == nil {
		return a.ex.Run(ctx)
	}
	health := newHealth(ctx, a.ex, a.metrics.handler())
	served := make(chan error, 1)
	go func() { served <- health.Serve(a.listener) }()
	a.log.Info("serving health and metrics", "address", a.listener.Addr().String())
	err := a.ex.Run(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthStop)
	defer cancel()
	if health.Shutdown(closing) != nil {
		err = errors.Join(err, health.Close())
	}
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}

// Register declares the functions to a dispatcher, and serves none.
func (a *App) Register(ctx context.Context) error { return a.ex.Register(ctx) }

// Addr is the address of health and metrics, "" when they are off.
func (a *App) Addr() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}
