package kvstore

import (
	"context"
	"strconv"
	"time"

	"github.com/callfan/callfan/pkg/results"
)

// lease is the value of a partition's lease. A free one has no owner and keeps
// its fence.
type lease struct {
	owned  bool
	owner  string
	fence  uint64
	expiry int64 // ms
}

func (l lease) encode() []byte {
	var e encoder
	owned := uint64(0)
	if l.owned {
		owned = 1
	}
	e.uint(owned)
	e.text(l.owner)
	e.uint(l.fence)
	e.uint(uint64(l.expiry)) //nolint:gosec // never negative
	return e.b
}

func decodeLease(value []byte) (lease, error) {
	if value == nil {
		return lease{}, nil
	}
	d := decoder{b: value}
	l := lease{owned: d.uint() == 1, owner: d.text(), fence: d.uint(), expiry: int64(d.uint())} //nolint:gosec // was an int64
	return l, d.err()
}

func leaseKey(partition int) string { return "l." + strconv.Itoa(partition) }

// Acquire takes or renews partitions; see results.Store. A new fence is the
// server's clock, or one more than the last: it grows even when the bucket was
// lost or the clock was set back.
func (s *Store) Acquire(
	ctx context.Context, owner string, partitions []int, ttl time.Duration,
) ([]results.Lease, error) {
	fences := make([]uint64, len(partitions)) // 0: another owner holds it
	err := s.each(ctx, len(partitions), func(ctx context.Context, i int) error {
		return s.swap(ctx, leaseKey(partitions[i]), func(value []byte, now int64) ([]byte, error) {
			fences[i] = 0
			l, err := decodeLease(value)
			if err != nil {
				return nil, err
			}
			mine := l.owned && l.owner == owner
			if l.owned && !mine && l.expiry > now {
				return nil, nil
			}
			if !mine {
				l.fence = max(l.fence+1, uint64(now)) //nolint:gosec // never negative
			}
			l.owned, l.owner, l.expiry = true, owner, now+ttl.Milliseconds()
			fences[i] = l.fence
			return l.encode(), nil
		})
	})
	if err != nil {
		return nil, err
	}
	var leases []results.Lease
	for i, fence := range fences {
		if fence != 0 {
			leases = append(leases, results.Lease{Partition: partitions[i], Fence: fence, Left: ttl})
		}
	}
	return leases, nil
}

// Release gives partitions up; see results.Store.
func (s *Store) Release(ctx context.Context, owner string, partitions []int) error {
	return s.each(ctx, len(partitions), func(ctx context.Context, i int) error {
		return s.swap(ctx, leaseKey(partitions[i]), func(value []byte, _ int64) ([]byte, error) {
			l, err := decodeLease(value)
			if err != nil || !l.owned || l.owner != owner {
				return nil, err
			}
			return lease{fence: l.fence}.encode(), nil
		})
	})
}
