package kvstore

import (
	"context"
	"crypto/rand"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/pkg/results"
)

// Store is the results store on a JetStream key-value bucket.
type Store struct {
	bucket *bucket
	clock  *clock
	lanes  *lanes
	config Config
	// instance tells this store's results from those of other processes.
	instance string
}

var _ results.Store = (*Store)(nil)

// New finds the bucket, or makes it, and reads the server's clock. It fails when
// JetStream cannot be reached, and with ErrBucketUnfit.
func New(ctx context.Context, js jetstream.JetStream, config Config) (*Store, error) {
	config = config.withDefaults()
	b, err := openBucket(ctx, js, config)
	if err != nil {
		return nil, err
	}
	c := &clock{stream: b.stream}
	if _, err := c.now(ctx); err != nil {
		return nil, err
	}
	return &Store{
		bucket: b, clock: c, config: config, instance: rand.Text(),
		lanes: &lanes{bucket: b, clock: c, config: config, waiting: map[turnID][]*change{}},
	}, nil
}

// Ping says whether the bucket answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := s.bucket.get(ctx, "members")
	return err
}

// Close waits for the writes under way. The connection stays open: it belongs to
// the caller.
func (s *Store) Close() error {
	s.lanes.close()
	return nil
}

// each runs f for 0 to n-1, several at once, and returns the first error.
func (s *Store) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if err := ctx.Err(); err != nil || n == 0 {
		return err
	}
	if n == 1 {
		return f(ctx, 0)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.config.Parallel)
	for i := range n {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}
