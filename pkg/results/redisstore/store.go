package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/callfan/callfan/pkg/results"
)

// Store is the results store on Redis.
type Store struct {
	client  redis.UniversalClient
	own     bool
	keys    keyspace
	config  Config
	batcher *batcher
	limits  ttls
}

var _ results.Store = (*Store)(nil)

// New connects and checks the server. It fails when Redis cannot be reached,
// with an *EvictionError when Redis may evict keys, and with ErrInvalidURL.
func New(ctx context.Context, config Config) (*Store, error) {
	config = config.withDefaults()
	client, own, err := config.open()
	if err != nil {
		return nil, err
	}
	s := &Store{
		client: client, own: own, config: config,
		keys:    keyspace{prefix: config.Prefix},
		batcher: &batcher{client: client, lanes: config.Lanes, size: config.BatchSize, timeout: config.FlushTimeout},
		limits:  newTTLs(config),
	}
	if err := s.check(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) check(ctx context.Context) error {
	if err := checkPolicy(ctx, s.client); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	for _, script := range scripts {
		// Loading only saves the first use a round trip: a user may lack the right.
		if err := s.client.ScriptLoad(ctx, script.source).Err(); err != nil && !isServerError(err) {
			return fmt.Errorf("redis: load scripts: %w", err)
		}
	}
	return nil
}

// Ping says whether Redis answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return explain(err)
	}
	return nil
}

// Close waits for the pipelines under way and closes the client, unless the
// configuration brought it.
func (s *Store) Close() error {
	s.batcher.close()
	if !s.own {
		return nil
	}
	return s.client.Close()
}

// run executes operations of this caller alone, in one pipeline, and returns the
// first error.
func (s *Store) run(ctx context.Context, operations []*operation) error {
	if err := ctx.Err(); err != nil || len(operations) == 0 {
		return err
	}
	execute(ctx, s.client, operations)
	return firstError(operations)
}

// share executes operations in pipelines shared with other callers, and returns
// the first error.
func (s *Store) share(ctx context.Context, operations []*operation) error {
	if err := s.batcher.do(ctx, operations); err != nil {
		return err
	}
	return firstError(operations)
}

func firstError(operations []*operation) error {
	for _, op := range operations {
		if op.err != nil {
			return explain(op.err)
		}
	}
	return nil
}
