package executorapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/callfan/callfan/internal/functionfile"
	"github.com/callfan/callfan/internal/httpserver"
	"github.com/callfan/callfan/pkg/executor"
)

// App is a generic executor that is ready to run.
type App struct {
	settings Settings
	version  string
	file     *functionfile.File
	ex       *executor.Executor // with the functions that are known before Run
	metrics  *metrics
	health   *httpserver.Server // nil without --metrics-listen
	log      *slog.Logger
}

// New reads the functions file and checks every setting; it opens nothing but the
// port for metrics. Its errors are about the user's input.
func New(s Settings, version string, log *slog.Logger) (*App, error) {
	file, err := functionfile.Load(s.File)
	if err != nil {
		return nil, err
	}
	a := &App{settings: s, version: version, file: file, metrics: newMetrics(version), log: log}
	if a.ex, err = a.executor(cmp.Or(file.Version, version)); err != nil {
		return nil, err
	}
	if s.Check || s.Register || s.MetricsListen == "" {
		return a, nil
	}
	if a.health, err = httpserver.Listen(s.MetricsListen); err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w", err)
	}
	return a, nil
}

// executor makes an executor of the functions that the file has now.
func (a *App) executor(version string) (*executor.Executor, error) {
	stop := a.settings.StopTimeout
	if stop == 0 {
		stop = -1 // to the executor zero means the default
	}
	ex, err := executor.New(executor.Config{
		Queue: a.settings.queue(), Pool: a.file.Pool, Concurrency: a.settings.Concurrency, ID: a.settings.Name, Version: version, Language: a.file.Language(),
		StopTimeout: stop, Observer: a.metrics, Logger: a.log,
	})
	if err != nil {
		return nil, err
	}
	return ex, a.file.Add(ex)
}

// healthStop bounds the end of requests for health and metrics.
const healthStop = 2 * time.Second

// Run serves until ctx is cancelled and stops in order. Health is served from before
// MCP servers are awaited to the end, so that a probe sees the start and the stop.
func (a *App) Run(ctx context.Context) error {
	serving := newServing(a)
	if a.health == nil {
		return serving.run(ctx)
	}
	a.health.Serve(newHealth(ctx, serving.ready, a.metrics.handler()))
	a.log.Info("serving health and metrics", "address", a.health.Addr())
	err := serving.run(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthStop)
	defer cancel()
	return errors.Join(err, a.health.Close(closing))
}

// Register declares the functions to a dispatcher, and serves none. MCP servers are
// started for as long as it takes to list their tools.
func (a *App) Register(ctx context.Context) error { return newServing(a).register(ctx) }

// Addr is the address of health and metrics, "" when they are off.
func (a *App) Addr() string {
	if a.health == nil {
		return ""
	}
	return a.health.Addr()
}
