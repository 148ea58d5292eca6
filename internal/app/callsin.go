package app

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// CallsIn lists up to limit calls of the whole installation that are in one of the
// states, open or saved ones, the oldest first. It reads every session that has such
// calls. Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) CallsIn(ctx context.Context, states []call.State, limit int) (ops.CallList, error) {
	if _, _, err := d.state.dispatcher(); err != nil {
		return ops.CallList{}, err
	}
	found := oldest{limit: limit}
	store := d.state.store
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	err := store.Unfinished(within, func(session string) error {
		group.Go(func() error {
			records, err := store.Session(within, session)
			if err != nil {
				return err
			}
			found.add(slices.DeleteFunc(records, func(r results.Record) bool { return !slices.Contains(states, r.State) }))
			return nil
		})
		return within.Err()
	})
	// A failed look-up ends the walk, too, and says more.
	if failed := group.Wait(); failed != nil {
		err = failed
	}
	return found.list(), err
}

// oldest keeps the calls that were claimed first, limit of them.
type oldest struct {
	limit int
	mu    sync.Mutex
	calls []ops.Call
	more  bool
}

func (o *oldest) add(records []results.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range records {
		o.calls = append(o.calls, shown(r))
	}
	if len(o.calls) > 2*o.limit { // not at each call too many, since it sorts
		o.cut()
	}
}

// cut sorts the calls and drops those over the limit.
func (o *oldest) cut() {
	slices.SortFunc(o.calls, claimedBefore)
	if len(o.calls) > o.limit {
		o.calls, o.more = slices.Delete(o.calls, o.limit, len(o.calls)), true
	}
}

func (o *oldest) list() ops.CallList {
	o.cut()
	return ops.CallList{Calls: o.calls, More: o.more}
}
