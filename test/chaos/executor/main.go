//go:build unix

// Command executor serves the functions of the chaos run and records what it does, see package effects.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/test/chaos/effects"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(ctx, logger); err != nil {
		logger.Error("the executor ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, logger *slog.Logger) error {
	ex, err := executor.New(executor.Config{
		Pool: "chaos", Queue: queue.Config{URL: os.Getenv("NATS_URL")}, ID: os.Getenv("CHAOS_NAME"),
		Concurrency: 16, StopTimeout: 6 * time.Second, Logger: logger,
	})
	if err != nil {
		return err
	}
	dir := os.Getenv("CHAOS_EFFECTS")
	for _, f := range effects.Functions() {
		h := handler{file: effects.File(dir, f.Name), class: f.Class}
		if err := executor.HandleRaw(ex, f.Name, h.run, options(f)...); err != nil {
			return err
		}
	}
	return ex.Run(ctx)
}

func options(f effects.Function) []executor.Option {
	opts := []executor.Option{executor.WithDescription("chaos"), executor.WithTimeout(25 * time.Second)}
	switch f.Class {
	case effects.None:
		return append(opts, executor.WithEffects(call.EffectsNone))
	case effects.Keyed:
		return append(opts, executor.WithEffects(call.EffectsIdempotent))
	default:
		return opts
	}
}

// handler runs one function.
type handler struct {
	file  string
	class effects.Class
}

// input is what the workload asks for.
type input struct {
	Number string `json:"n"`
	// MS is how long the run takes.
	MS int `json:"ms"`
	// Fails is how many attempts fail for a technical reason.
	Fails int `json:"fails"`
}

func (h handler) run(ctx context.Context, c executor.Call) (executor.Output, error) {
	var in input
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return executor.Output{}, err
	}
	line := effects.Line{
		Number: in.Number, Key: c.Key.String(), IdempotencyKey: c.IdempotencyKey,
		Attempt: c.Attempt, Uncertain: c.Uncertain,
	}
	half := time.Duration(in.MS) * time.Millisecond / 2
	if err := h.note(effects.Start, line); err != nil {
		return executor.Output{}, err
	}
	if err := wait(ctx, half); err != nil {
		return executor.Output{}, err
	}
	if in.Fails >= c.Attempt {
		return executor.Output{}, executor.Retry(errors.New("a technical failure on purpose"), 0)
	}
	if err := h.act(ctx, line); err != nil {
		return executor.Output{}, err
	}
	if err := wait(ctx, half); err != nil {
		return executor.Output{}, err
	}
	if err := h.note(effects.End, line); err != nil {
		return executor.Output{}, err
	}
	return executor.Text("done " + in.Number), nil
}

func (h handler) note(event effects.Event, line effects.Line) error {
	line.Event = event
	return effects.Append(h.file, line)
}

// act is the side effect.
func (h handler) act(ctx context.Context, line effects.Line) error {
	switch h.class {
	case effects.Fail:
		return h.note(effects.Done, line)
	case effects.Keyed:
		return h.once(ctx, line)
	default:
		return nil
	}
}

// once acts unless the key is in the ledger already, as a downstream that knows idempotency keys does.
func (h handler) once(ctx context.Context, line effects.Line) error {
	lock, err := os.OpenFile(h.file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks, as the death of this process does
	// Asked again and again, since a frozen process may hold the lock for long.
	for syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the ledger: %w", err)
		}
	}
	lines, err := effects.Read(h.file)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.Event == effects.Done && l.IdempotencyKey == line.IdempotencyKey {
			return nil
		}
	}
	return h.note(effects.Done, line)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
