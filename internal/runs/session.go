package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/pkg/call"
)

// takeover is how long the dispatcher is kept waiting for a run that it owns and that is
// not driven here yet: it is quicker to learn of a partition than the engine.
const takeover = 2 * time.Second

// driven waits until the run is driven here and its calls are known; nil when that takes
// longer than a takeover. What is over is not waited for.
func (e *Engine) driven(ctx context.Context, id string) *runner {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline, first := time.Now().Add(takeover), true; time.Now().Before(deadline); first = false {
		if r := e.runner(id); r != nil && r.shown() {
			return r
		}
		if first {
			if run, err := e.Get(ctx, id); err != nil || run.Status.Final() {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// Session shows a run as a session whose required actions are the calls that have no
// output yet. Only the replica that drives the run knows them; on others the refusal is
// busy.
func (e *Engine) Session(ctx context.Context, id string) (call.Session, error) {
	if r := e.driven(ctx, id); r != nil {
		if calls, ok := r.pendingCalls(); ok {
			s := call.Session{ID: id, Status: string(InProgress), Calls: calls}
			if len(calls) > 0 {
				s.Status = string(RequiresAction)
			}
			return s, nil
		}
	}
	run, err := e.Get(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return call.Session{}, &call.Refusal{Class: call.RefusedGone, Err: err}
	case err != nil:
		return call.Session{}, &call.Refusal{Class: call.RefusedBusy, Err: err}
	case run.Status.Final():
		return call.Session{ID: id, Status: string(run.Status)}, nil
	}
	return call.Session{}, busy("the run is not driven here yet")
}

// saves is how many outputs are stored at once.
const saves = 8

// Submit stores the outputs of calls, each for ever. Nil means that all are stored.
func (e *Engine) Submit(ctx context.Context, batch call.Batch) error {
	r := e.driven(ctx, batch.Session)
	if r == nil {
		run, err := e.Get(ctx, batch.Session)
		if errors.Is(err, ErrNotFound) || err == nil && run.Status.Final() {
			return &call.Refusal{Class: call.RefusedGone, Err: errors.New("the run is over")}
		}
		return busy("the run is not driven here")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(saves)
	for _, a := range batch.Answers {
		group.Go(func() error { return r.answer(ctx, a) })
	}
	err := group.Wait()
	signal(r.wake)
	return err
}

// answer stores the output of one call.
func (r *runner) answer(ctx context.Context, a call.Answer) error {
	p, shown := r.pending(a.Key)
	switch {
	case !shown:
		return busy("the run is being loaded")
	case p == nil:
		return &call.Refusal{
			Class: call.RefusedUnknownCall, CallID: a.Call,
			Err: fmt.Errorf("no call %s of response %s waits for an output", a.Call, a.Turn),
		}
	}
	item := outputItem(p.call.Kind, p.item, a.Result)
	stored, err := r.e.parts.Store.PutOutput(ctx, r.id, Output{Ref: p.ref, Item: item})
	switch {
	case errors.Is(err, ErrTooLarge):
		return &call.Refusal{Class: call.RefusedTooLarge, CallID: a.Call, Err: err}
	case err != nil:
		return &call.Refusal{Class: call.RefusedBusy, Err: err}
	}
	r.answered(p)
	if !bytes.Equal(stored, item) {
		return &call.Refusal{
			Class: call.RefusedConflict, CallID: a.Call, Err: errors.New("the call has another output"),
		}
	}
	return nil
}
