package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results"
)

// Calls lists the recorded calls of a session in the order of their claims. Before
// the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) Calls(ctx context.Context, session string) ([]ops.Call, error) {
	if _, _, err := d.state.dispatcher(); err != nil {
		return nil, err
	}
	records, err := d.state.store.Session(ctx, session)
	if err != nil {
		return nil, err
	}
	list := make([]ops.Call, len(records))
	for i, r := range records {
		list[i] = shown(r)
	}
	slices.SortFunc(list, claimedBefore)
	return list, nil
}

func claimedBefore(a, b ops.Call) int {
	return cmp.Or(a.Claimed.Compare(b.Claimed), cmp.Compare(a.Key.Session, b.Key.Session),
		cmp.Compare(a.Key.Turn, b.Key.Turn), cmp.Compare(a.Key.Call, b.Key.Call))
}

// Call shows one call; its state is call.Absent when there is no record of it.
// Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) Call(ctx context.Context, key call.Key) (ops.Call, error) {
	if _, _, err := d.state.dispatcher(); err != nil {
		return ops.Call{}, err
	}
	records, err := d.state.store.Get(ctx, []call.Key{key})
	if err != nil {
		return ops.Call{}, err
	}
	records[0].Key = key
	c := shown(records[0])
	for _, step := range records[0].History {
		c.History = append(c.History, ops.Step(step))
	}
	c.Explanation = c.Explain()
	return c, nil
}

func shown(r results.Record) ops.Call {
	c := ops.Call{
		Key: r.Key, Function: r.Function, State: r.State, Attempt: r.Attempt, Handover: r.Handover,
		Claimed: r.ClaimedAt, AgeMS: r.Age.Milliseconds(), SinceMS: r.Since.Milliseconds(), Outcome: r.OutcomeID,
	}
	if r.Result != nil {
		c.Reason = r.Result.Reason
	}
	c.Explanation = c.Explain()
	return c
}

// Decide takes an operator's decision about a call without a result. Errors wrap those of
// dispatcher.Decide. Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) Decide(ctx context.Context, key call.Key, decision ops.Decision) error {
	running, _, err := d.state.dispatcher()
	if err != nil {
		return err
	}
	made := dispatcher.Decision{Rerun: decision.Rerun, By: decision.By}
	if !made.Rerun {
		made.Result = decision.Result()
	}
	err = running.Decide(ctx, key, made)
	if errors.Is(err, queue.ErrTooLarge) || errors.Is(err, queue.ErrInvalidOutcome) {
		return fmt.Errorf("%w: %w", dispatcher.ErrUnusable, err)
	}
	return err
}
