package dispatcher

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func TestShareIsAPartitionOfThePartitions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,20}`), 1, 8, rapid.ID).Draw(t, "members")
		n := rapid.IntRange(1, 256).Draw(t, "partitions")
		owner := map[int]string{}
		for _, m := range members {
			for _, p := range share(m, members, n) {
				require.Empty(t, owner[p], "partition %d has two owners", p)
				owner[p] = m
			}
		}
		require.Len(t, owner, n, "some partition has no owner")
	})
}

func TestShareIsEvenAndMovesLittle(t *testing.T) {
	t.Parallel()
	members := []string{"a", "b", "c"}
	before := map[int]string{}
	for _, m := range members {
		mine := share(m, members, 64)
		require.InDelta(t, 64.0/3, len(mine), 13, "%s has %d of 64", m, len(mine))
		for _, p := range mine {
			before[p] = m
		}
	}
	for _, m := range []string{"a", "b"} { // c leaves
		kept := map[int]bool{}
		for _, p := range share(m, []string{"a", "b"}, 64) {
			kept[p] = true
		}
		for p, owner := range before {
			if owner == m {
				require.True(t, kept[p], "partition %d moved although its owner stayed", p)
			}
		}
	}
}

// failedOver is a store that lost a lease: its calls remember a higher fence than the lease that it still knows.
type failedOver struct {
	*memory
	fence    atomic.Uint64
	released atomic.Int64
}

const stamped = 5

func (s *failedOver) Acquire(_ context.Context, _ string, partitions []int, ttl time.Duration) ([]results.Lease, error) {
	s.fence.CompareAndSwap(0, 1)
	return []results.Lease{{Partition: partitions[0], Fence: s.fence.Load(), Left: ttl}}, nil
}

func (s *failedOver) Release(context.Context, string, []int) error {
	s.released.Add(1)
	s.fence.Store(stamped + 1) // as the next lease has it
	return nil
}

func (s *failedOver) Claim(ctx context.Context, fence uint64, claims []results.Claim) ([]results.Record, error) {
	if fence < stamped {
		return nil, results.ErrFenced
	}
	return s.memory.Claim(ctx, fence, claims)
}

func TestALeaseWhoseFenceIsTooLowIsRenounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &failedOver{memory: newMemory("s")}
		d, err := New(Config{
			Name: "one", Secret: []byte("0123456789abcdef"), Partitions: 1, Logger: slog.New(slog.DiscardHandler),
		}, Parts{
			API: &fakeAPI{calls: listedCalls(1)}, Queue: newFakeQueue(succeed), Store: store,
			Functions: knows{"f": call.Function{Name: "f"}},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = d.Run(ctx) }()
		wait(30 * time.Second)
		require.Equal(t, call.Settled, store.state(listedCalls(1)[0].Key))
		require.EqualValues(t, 1, store.released.Load())
		cancel()
		<-done
	})
}
