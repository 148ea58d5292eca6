package property_test

import (
	"context"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// recorder shows the checks what a store does.
type recorder struct {
	results.Store
	check *checks
}

func (r recorder) Claim(ctx context.Context, fence uint64, claims []results.Claim) ([]results.Record, error) {
	r.check.flushing.RLock()
	defer r.check.flushing.RUnlock()
	recs, err := r.Store.Claim(ctx, fence, claims)
	return r.seen(recs, err)
}

func (r recorder) Get(ctx context.Context, keys []call.Key) ([]results.Record, error) {
	r.check.flushing.RLock()
	defer r.check.flushing.RUnlock()
	recs, err := r.Store.Get(ctx, keys)
	return r.seen(recs, err)
}

func (r recorder) Session(ctx context.Context, session string) ([]results.Record, error) {
	r.check.flushing.RLock()
	defer r.check.flushing.RUnlock()
	recs, err := r.Store.Session(ctx, session)
	return r.seen(recs, err)
}

func (r recorder) seen(recs []results.Record, err error) ([]results.Record, error) {
	for _, rec := range recs {
		r.check.shown(rec)
	}
	return recs, err
}

func (r recorder) Complete(ctx context.Context, fences []uint64, completions []results.Completion) ([]results.Completed, error) {
	r.check.flushing.RLock()
	defer r.check.flushing.RUnlock()
	done, err := r.Store.Complete(ctx, fences, completions)
	for i, d := range done {
		if err != nil || d.Err != nil || d.Verdict != results.Saved {
			continue
		}
		// The store's own words about what it saved: a replay says "saved", too.
		rec := results.Record{Key: completions[i].Key}
		if recs, err := r.Store.Get(ctx, []call.Key{completions[i].Key}); err == nil {
			rec = recs[0]
			rec.Key = completions[i].Key
		}
		r.check.completed(completions[i].Key, completions[i].OutcomeID, rec)
	}
	return done, err
}

func (r recorder) Move(ctx context.Context, fence uint64, moves []results.Move) ([]results.Moved, error) {
	r.check.flushing.RLock()
	defer r.check.flushing.RUnlock()
	moved, err := r.Store.Move(ctx, fence, moves)
	for i, m := range moved {
		if err == nil && m.Err == nil && m.Done {
			r.check.moved(moves[i])
		}
	}
	return moved, err
}
