package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// The arguments of the functions.
type (
	none     struct{}
	withText struct {
		Text string `json:"text"`
	}
	withMS struct {
		MS int64 `json:"ms,omitempty"`
	}
	withCount struct {
		Count int64 `json:"count"`
	}
	withBytes struct {
		Bytes int `json:"bytes"`
	}
	toRetry struct {
		AfterMS int64 `json:"after_ms"`
		OkAt    int   `json:"ok_at"`
	}
	toExit struct {
		Unless string `json:"unless"`
	}
	toPay struct {
		Verdict string `json:"verdict,omitempty"`
		MS      int64  `json:"ms,omitempty"`
	}
)

var anyObject = executor.WithParameters(json.RawMessage(`{"type":"object"}`))

func (j journal) register(ex *executor.Executor) error {
	reads := executor.WithEffects(call.EffectsNone)
	repeats := executor.WithEffects(call.EffectsIdempotent)
	effects := executor.WithEffects(call.EffectsSideEffects)
	describe := executor.WithDescription
	return errors.Join(
		executor.HandleRaw(ex, "echo", echo, reads, anyObject, describe("Returns its arguments.")),
		executor.HandleRaw(ex, "sag mir, wo ☂.*>", echo, reads, anyObject, describe("Returns its arguments.")),
		executor.HandleRaw(ex, "a/"+strings.Repeat("n", 300), echo, reads, anyObject, describe("Returns its arguments.")),
		executor.Handle(ex, "fail", fail, reads, describe("Fails with the text.")),
		executor.Handle(ex, "retry", retry, repeats, executor.WithAttempts(5), describe("Fails until an attempt.")),
		executor.Handle(ex, "sleep", sleep, repeats, describe("Waits.")),
		executor.Handle(ex, "key", key, repeats, describe("Says what it knows about its call.")),
		executor.Handle(ex, "text", text, reads, describe("Returns the text.")),
		executor.Handle(ex, "parts", parts, reads, describe("Returns content parts.")),
		executor.Handle(ex, "object", object, reads, describe("Returns an object.")),
		executor.Handle(ex, "nothing", nothing, reads, describe("Returns nothing.")),
		executor.Handle(ex, "crash", crash, reads, describe("Panics.")),
		executor.Handle(ex, "typed", typed, reads, describe("Returns the number.")),
		executor.Handle(ex, "block", block, repeats, describe("Keeps a thread busy.")),
		executor.Handle(ex, "stuck", stuck, reads, executor.WithTimeout(time.Second), executor.WithAttempts(1), describe("Never returns.")),
		executor.Handle(ex, "exit", exit, repeats, describe("Ends the process.")),
		executor.Handle(ex, "large", large, reads, describe("Returns a long text.")),
		executor.Handle(ex, "pay", j.pay, effects, executor.WithTypedVerify(j.verify), describe("Pays.")),
		executor.Handle(ex, "pay_blind", j.pay, effects, describe("Pays.")),
		executor.Handle(ex, "pay_park", j.pay, effects, executor.WithOnUncertain(call.UncertainPark), describe("Pays.")),
	)
}

func echo(_ context.Context, c executor.Call) (executor.Output, error) {
	return executor.Text(string(c.Arguments)), nil
}

func text(_ context.Context, in withText) (string, error) { return in.Text, nil }
func fail(_ context.Context, in withText) (string, error) { return "", errors.New(in.Text) }
func typed(_ context.Context, in withCount) (string, error) {
	return strconv.FormatInt(in.Count, 10), nil
}

func large(_ context.Context, in withBytes) (string, error) {
	return strings.Repeat("x", in.Bytes), nil
}
func nothing(context.Context, none) (any, error)  { return nil, nil } //nolint:nilnil // no value is what is asked for
func crash(context.Context, none) (string, error) { panic("secret-detail") }

func retry(ctx context.Context, in toRetry) (string, error) {
	c, _ := executor.FromContext(ctx)
	if c.Attempt < in.OkAt {
		return "", executor.Retry(errors.New("not yet"), time.Duration(in.AfterMS)*time.Millisecond)
	}
	return "ok", nil
}

func sleep(ctx context.Context, in withMS) (string, error) { return "slept", wait(ctx, in.MS) }

func wait(ctx context.Context, ms int64) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nil
	}
}

func block(_ context.Context, in withMS) (string, error) {
	for end := time.Now().Add(time.Duration(in.MS) * time.Millisecond); time.Now().Before(end); {
	}
	return "blocked", nil
}

func stuck(context.Context, none) (string, error) {
	time.Sleep(10 * time.Minute) //nolint:forbidigo // the point is not to listen
	return "", nil
}

func exit(_ context.Context, in toExit) (string, error) {
	if _, err := os.Stat(in.Unless); err != nil {
		os.Exit(3)
	}
	return "alive", nil
}

func key(ctx context.Context, _ none) (map[string]any, error) {
	c, _ := executor.FromContext(ctx)
	return map[string]any{
		"idempotency_key": c.IdempotencyKey, "attempt": c.Attempt, "function": c.Function,
		"session_id": c.Session, "turn_id": c.Turn, "call_id": c.Key.Call,
		"deadline_ms": c.Deadline.UnixMilli(), "traceparent": c.Traceparent,
	}, nil
}

func parts(context.Context, none) (executor.Content, error) {
	return executor.Content{executor.TextPart("first"), executor.TextPart("second ☂")}, nil
}

func object(context.Context, none) (any, error) {
	return map[string]any{
		"name":    "Žluťoučký kůň ☂",
		"nested":  map[string]any{"list": []any{1, 2.5, true, nil, "<a>&"}, "empty": map[string]any{}},
		"integer": int64(9007199254740991), "text": `{"quoted":"\n"}`,
	}, nil
}

func (j journal) pay(ctx context.Context, in toPay) (string, error) {
	c, _ := executor.FromContext(ctx)
	j.log("effect", c)
	return "paid", wait(ctx, in.MS)
}

func (j journal) verify(ctx context.Context, in toPay) (executor.Verdict, error) {
	c, _ := executor.FromContext(ctx)
	j.log("verify", c)
	switch in.Verdict {
	case "done":
		return executor.Done("verified"), nil
	case "not_done":
		return executor.NotDone(), nil
	case "crash":
		panic("secret-detail")
	default:
		return executor.CannotTell("no receipt"), nil
	}
}
