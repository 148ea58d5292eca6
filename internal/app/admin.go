package app

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/internal/ops"
)

var _ ops.Admin = (*Dispatcher)(nil)

// lookups is how many partitions' lists are read at the same time.
const lookups = 16

// Sessions lists the watched sessions of the installation, and those that this
// replica still serves, by id. Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) Sessions(ctx context.Context) ([]ops.Session, error) {
	running, _, err := d.state.dispatcher()
	if err != nil {
		return nil, err
	}
	found := map[string]ops.Session{}
	attached := make([][]string, d.opts.Queue.Partitions)
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	for n := range attached {
		group.Go(func() (err error) {
			attached[n], _, err = d.state.store.Attached(within, n, "")
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for n, ids := range attached {
		for _, id := range ids {
			found[id] = ops.Session{ID: id, Partition: n, Watched: true}
		}
	}
	for _, info := range running.Sessions() {
		found[info.ID] = ops.Served(info)
	}
	list := make([]ops.Session, 0, len(found))
	for _, s := range found {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b ops.Session) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// Attach watches sessions. Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) Attach(ctx context.Context, ids ...string) error {
	running, _, err := d.state.dispatcher()
	if err != nil {
		return err
	}
	return running.Attach(ctx, ids...)
}

// Detach stops watching sessions. Before the start it fails with ops.ErrNotStarted.
func (d *Dispatcher) Detach(ctx context.Context, ids ...string) error {
	running, _, err := d.state.dispatcher()
	if err != nil {
		return err
	}
	return running.Detach(ctx, ids...)
}

// Functions lists what executors have registered. Before the start it fails with
// ops.ErrNotStarted.
func (d *Dispatcher) Functions(context.Context) ([]ops.Function, error) {
	_, registry, err := d.state.dispatcher()
	if err != nil {
		return nil, err
	}
	registered := registry.Functions()
	list := make([]ops.Function, len(registered))
	for i, r := range registered {
		list[i] = ops.Function{Function: r.Function, Pool: r.Pool, Language: r.Language, Version: r.Version, Changed: r.Changed}
		for _, e := range r.Executors {
			list[i].Executors = append(list[i].Executors, ops.Executor(e))
		}
		f := r.Function
		f.Policy = d.opts.Dispatcher.Policies[f.Name].Over(f.Policy)
		list[i].Effective = f.WithDefaults()
	}
	return list, nil
}
