//go:build unix

// Command executor serves the functions of the chaos run and records what it does, see package effects.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"

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
		h := handler{ledger: effects.Ledger{File: effects.File(dir, f.Name)}, class: f.Class}
		if err := executor.HandleRaw(ex, f.Name, h.run, h.options()...); err != nil {
			return err
		}
	}
	return ex.Run(ctx)
}

// handler runs one function.
type handler struct {
	ledger effects.Ledger
	class  effects.Class
}

func (h handler) options() []executor.Option {
	opts := []executor.Option{executor.WithDescription("chaos"), executor.WithTimeout(25 * time.Second)}
	switch h.class {
	case effects.None:
		return append(opts, executor.WithEffects(call.EffectsNone))
	case effects.Keyed:
		return append(opts, executor.WithEffects(call.EffectsIdempotent))
	case effects.Verified:
		return append(opts, executor.WithVerify(h.verify))
	case effects.Parked:
		return append(opts, executor.WithOnUncertain(call.UncertainPark))
	default:
		return opts
	}
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
	line := lineOf(in, c)
	half := time.Duration(in.MS) * time.Millisecond / 2
	if err := h.ledger.Note(effects.Start, line); err != nil {
		return executor.Output{}, err
	}
	if err := effects.Wait(ctx, half); err != nil {
		return executor.Output{}, err
	}
	if in.Fails >= c.Attempt {
		return executor.Output{}, executor.Retry(errors.New("a technical failure on purpose"), 0)
	}
	if err := h.act(ctx, line); err != nil {
		return executor.Output{}, err
	}
	if err := effects.Wait(ctx, half); err != nil {
		return executor.Output{}, err
	}
	if err := h.ledger.Note(effects.End, line); err != nil {
		return executor.Output{}, err
	}
	return executor.Text("done " + in.Number), nil
}

// act is the side effect.
func (h handler) act(ctx context.Context, line effects.Line) error {
	switch h.class {
	case effects.Fail:
		return h.ledger.Note(effects.Done, line)
	case effects.Keyed:
		return h.ledger.Once(ctx, line)
	case effects.Verified, effects.Parked:
		return h.ledger.UnlessBarred(ctx, line)
	default:
		return nil
	}
}

// verify looks whether an earlier run acted. When it did not, it makes sure that it never will.
func (h handler) verify(ctx context.Context, c executor.Call) (executor.Verdict, error) {
	var in input
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return executor.Verdict{}, err
	}
	done, err := h.ledger.DoneOrBar(ctx, lineOf(in, c))
	switch {
	case err != nil:
		return executor.Verdict{}, err
	case done:
		return executor.Done("done " + in.Number), nil
	default:
		return executor.NotDone(), nil
	}
}

func lineOf(in input, c executor.Call) effects.Line {
	return effects.Line{
		Number: in.Number, Key: c.Key.String(), IdempotencyKey: c.IdempotencyKey, Run: uuid.NewString(),
		Attempt: c.Attempt, Uncertain: c.Uncertain,
	}
}
