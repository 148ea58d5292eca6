package property_test

import (
	"context"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func (s gatedStore) Claim(ctx context.Context, fence uint64, claims []results.Claim) ([]results.Record, error) {
	return through(ctx, s.g, func() ([]results.Record, error) { return s.Store.Claim(ctx, fence, claims) })
}

func (s gatedStore) Complete(ctx context.Context, fences []uint64, cs []results.Completion) ([]results.Completed, error) {
	return through(ctx, s.g, func() ([]results.Completed, error) { return s.Store.Complete(ctx, fences, cs) })
}

func (s gatedStore) Move(ctx context.Context, fence uint64, moves []results.Move) ([]results.Moved, error) {
	return through(ctx, s.g, func() ([]results.Moved, error) { return s.Store.Move(ctx, fence, moves) })
}

func (s gatedStore) Get(ctx context.Context, keys []call.Key) ([]results.Record, error) {
	return through(ctx, s.g, func() ([]results.Record, error) { return s.Store.Get(ctx, keys) })
}

func (s gatedStore) Session(ctx context.Context, session string) ([]results.Record, error) {
	return through(ctx, s.g, func() ([]results.Record, error) { return s.Store.Session(ctx, session) })
}

func (s gatedStore) Unfinished(ctx context.Context, each func(session string) error) error {
	_, err := through(ctx, s.g, nothing(func() error { return s.Store.Unfinished(ctx, each) }))
	return err
}

func (s gatedStore) Attach(ctx context.Context, ids ...string) error {
	_, err := through(ctx, s.g, nothing(func() error { return s.Store.Attach(ctx, ids...) }))
	return err
}

func (s gatedStore) Detach(ctx context.Context, ids ...string) error {
	_, err := through(ctx, s.g, nothing(func() error { return s.Store.Detach(ctx, ids...) }))
	return err
}

func (s gatedStore) Attached(ctx context.Context, partition int, since string) (ids []string, version string, err error) {
	type answer struct {
		ids     []string
		version string
	}
	a, err := through(ctx, s.g, func() (answer, error) {
		ids, version, err := s.Store.Attached(ctx, partition, since)
		return answer{ids, version}, err
	})
	return a.ids, a.version, err
}

func (s gatedStore) Join(ctx context.Context, member string, ttl time.Duration) ([]string, error) {
	return through(ctx, s.g, func() ([]string, error) { return s.Store.Join(ctx, member, ttl) })
}

func (s gatedStore) Leave(ctx context.Context, member string) error {
	_, err := through(ctx, s.g, nothing(func() error { return s.Store.Leave(ctx, member) }))
	return err
}

func (s gatedStore) Acquire(ctx context.Context, owner string, ps []int, ttl time.Duration) ([]results.Lease, error) {
	return through(ctx, s.g, func() ([]results.Lease, error) { return s.Store.Acquire(ctx, owner, ps, ttl) })
}

func (s gatedStore) Release(ctx context.Context, owner string, ps []int) error {
	_, err := through(ctx, s.g, nothing(func() error { return s.Store.Release(ctx, owner, ps) }))
	return err
}
