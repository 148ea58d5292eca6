//go:build chaosbug_nofence

package app

import (
	"context"
	"time"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/results"
)

// planted lets every replica believe that it owns every partition, under one fence for all.
func planted(parts dispatcher.Parts) dispatcher.Parts {
	parts.Store = unfencedStore{parts.Store}
	return parts
}

type unfencedStore struct{ dispatcher.Store }

// Join sees no other replica.
func (unfencedStore) Join(_ context.Context, member string, _ time.Duration) ([]string, error) {
	return []string{member}, nil
}

// Acquire gives what is asked for.
func (unfencedStore) Acquire(_ context.Context, _ string, partitions []int, ttl time.Duration) ([]results.Lease, error) {
	leases := make([]results.Lease, len(partitions))
	for i, p := range partitions {
		leases[i] = results.Lease{Partition: p, Fence: 1 << 50, Left: ttl}
	}
	return leases, nil
}
