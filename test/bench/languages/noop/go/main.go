// Command go is the no-op executor on the Go SDK.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

type input struct {
	Text string `json:"text"`
}

func noop(context.Context, input) (string, error) { return "ok", nil }

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	concurrency, err := strconv.Atoi(os.Getenv("BENCH_CONCURRENCY"))
	if err != nil {
		return err
	}
	ex, err := executor.New(executor.Config{Pool: "bench-go", Queue: queue.Config{URL: os.Getenv("NATS_URL")}, Concurrency: concurrency})
	if err != nil {
		return err
	}
	if err := executor.Handle(ex, "noop_go", noop, executor.WithEffects(call.EffectsNone)); err != nil {
		return err
	}
	return ex.Run(ctx)
}

func main() {
	if err := run(); err != nil {
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Error("the executor failed", "error", err)
		os.Exit(1)
	}
}
