package redisstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/callfan/callfan/pkg/results"
)

// Join announces a dispatcher; see results.Store.
func (s *Store) Join(ctx context.Context, member string, ttl time.Duration) ([]string, error) {
	op := &operation{script: joinScript, keys: []string{s.keys.members()}, args: []any{member, milliseconds(ttl)}}
	if err := s.run(ctx, []*operation{op}); err != nil {
		return nil, err
	}
	members, err := texts(op.reply)
	slices.Sort(members)
	return members, err
}

// Leave withdraws a dispatcher; see results.Store.
func (s *Store) Leave(ctx context.Context, member string) error {
	if err := s.client.ZRem(ctx, s.keys.members(), member).Err(); err != nil {
		return explain(err)
	}
	return nil
}

// Acquire takes or renews partitions; see results.Store.
func (s *Store) Acquire(
	ctx context.Context, owner string, partitions []int, ttl time.Duration,
) ([]results.Lease, error) {
	operations := make([]*operation, len(partitions))
	for i, p := range partitions {
		operations[i] = &operation{
			script: acquireScript, keys: []string{s.keys.lease(p)}, args: []any{owner, milliseconds(ttl)},
		}
	}
	if err := s.run(ctx, operations); err != nil {
		return nil, err
	}
	var leases []results.Lease
	for i, op := range operations {
		row, err := texts(op.reply)
		if err != nil {
			return nil, err
		}
		if len(row) == 0 { // another owner holds it
			continue
		}
		lease, err := parseLease(partitions[i], row)
		if err != nil {
			return nil, err
		}
		leases = append(leases, lease)
	}
	return leases, nil
}

func parseLease(partition int, row []string) (results.Lease, error) {
	if len(row) != 2 {
		return results.Lease{}, errReply
	}
	fence, err := strconv.ParseUint(row[0], 10, 64)
	if err != nil {
		return results.Lease{}, errReply
	}
	left, err := strconv.ParseInt(row[1], 10, 64)
	if err != nil {
		return results.Lease{}, errReply
	}
	return results.Lease{Partition: partition, Fence: fence, Left: time.Duration(left) * time.Millisecond}, nil
}

// Release gives partitions up; see results.Store.
func (s *Store) Release(ctx context.Context, owner string, partitions []int) error {
	operations := make([]*operation, len(partitions))
	for i, p := range partitions {
		operations[i] = &operation{script: releaseScript, keys: []string{s.keys.lease(p)}, args: []any{owner}}
	}
	return s.run(ctx, operations)
}
