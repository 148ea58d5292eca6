package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/results"
)

const long = time.Minute

func testLease(t *testing.T, b backend) {
	acquire := func(t *testing.T, s results.Store, owner string, ttl time.Duration, partitions ...int) []results.Lease {
		t.Helper()
		leases, err := s.Acquire(deadline(t), owner, partitions, ttl)
		require.NoError(t, err)
		return leases
	}
	b.run(t, map[string]func(*testing.T, results.Store){
		"free partitions are taken": func(t *testing.T, s results.Store) {
			leases := acquire(t, s, "a", long, 3, 1, 2)
			require.Len(t, leases, 3)
			for i, p := range []int{3, 1, 2} {
				require.Equal(t, p, leases[i].Partition)
				require.Positive(t, leases[i].Fence)
				require.LessOrEqual(t, leases[i].Left, long)
				require.Greater(t, leases[i].Left, long-10*time.Second)
			}
		},
		"held partitions are missing from the answer": func(t *testing.T, s results.Store) {
			acquire(t, s, "a", long, 1, 2)
			leases := acquire(t, s, "b", long, 1, 2, 3)
			require.Len(t, leases, 1)
			require.Equal(t, 3, leases[0].Partition)
			require.Empty(t, acquire(t, s, "c", long, 1, 2, 3))
		},
		"renewal keeps the fence and extends": func(t *testing.T, s results.Store) {
			first := acquire(t, s, "a", 2*time.Second, 1)[0]
			start := time.Now()
			require.Eventually(t, func() bool {
				again := acquire(t, s, "a", 2*time.Second, 1)
				require.Equal(t, first.Fence, again[0].Fence)
				require.Empty(t, acquire(t, s, "b", long, 1))
				return time.Since(start) > 3*time.Second
			}, patience, 50*time.Millisecond)
		},
		"an expired lease is taken with a higher fence": func(t *testing.T, s results.Store) {
			first := acquire(t, s, "a", 300*time.Millisecond, 1)[0]
			var second []results.Lease
			require.Eventually(t, func() bool {
				second = acquire(t, s, "b", long, 1)
				return len(second) == 1
			}, patience, 20*time.Millisecond)
			require.Greater(t, second[0].Fence, first.Fence)
			require.Empty(t, acquire(t, s, "a", long, 1))
		},
		"an expired lease that nobody took is renewed": func(t *testing.T, s results.Store) {
			first := acquire(t, s, "a", time.Millisecond, 1)[0]
			start := time.Now()
			require.Eventually(t, func() bool { return time.Since(start) > 50*time.Millisecond }, patience, 10*time.Millisecond)
			require.Equal(t, first.Fence, acquire(t, s, "a", long, 1)[0].Fence)
		},
		"release frees at once and the fence grows": func(t *testing.T, s results.Store) {
			last := acquire(t, s, "a", long, 1)[0].Fence
			for _, owner := range []string{"b", "a", "a", "b"} {
				for _, o := range []string{"a", "b"} {
					require.NoError(t, s.Release(deadline(t), o, []int{1}))
				}
				lease := acquire(t, s, owner, long, 1)[0]
				require.Greater(t, lease.Fence, last)
				last = lease.Fence
			}
		},
		"only the owner releases": func(t *testing.T, s results.Store) {
			acquire(t, s, "a", long, 1)
			require.NoError(t, s.Release(deadline(t), "b", []int{1, 2}))
			require.Empty(t, acquire(t, s, "b", long, 1))
		},
		"owners of any bytes": func(t *testing.T, s results.Store) {
			for p, owner := range oddIDs {
				first := acquire(t, s, owner, long, p)
				require.Equal(t, first[0].Fence, acquire(t, s, owner, long, p)[0].Fence)
				require.Empty(t, acquire(t, s, owner+"x", long, p))
			}
		},
	})
	t.Run("16 contenders make one owner", func(t *testing.T) {
		t.Parallel()
		one, two := b.pair(t)
		won := make([]bool, 16)
		errs := make([]error, len(won))
		var wg sync.WaitGroup
		for i := range won {
			s := one
			if i%2 == 1 {
				s = two
			}
			wg.Go(func() {
				leases, err := s.Acquire(deadline(t), fmt.Sprintf("owner%d", i), []int{1}, long)
				won[i], errs[i] = len(leases) == 1, err
			})
		}
		wg.Wait()
		owners := 0
		for i := range won {
			require.NoError(t, errs[i])
			if won[i] {
				owners++
			}
		}
		require.Equal(t, 1, owners)
	})
}

func testMembers(t *testing.T, b backend) {
	join := func(t *testing.T, s results.Store, member string, ttl time.Duration) []string {
		t.Helper()
		members, err := s.Join(deadline(t), member, ttl)
		require.NoError(t, err)
		return members
	}
	b.run(t, map[string]func(*testing.T, results.Store){
		"are sorted and include the caller": func(t *testing.T, s results.Store) {
			require.Equal(t, []string{"b"}, join(t, s, "b", long))
			require.Equal(t, []string{"a", "b"}, join(t, s, "a", long))
			require.Equal(t, []string{"a", "b", "c"}, join(t, s, "c", long))
			require.Equal(t, []string{"a", "b", "c"}, join(t, s, "b", long), "again")
		},
		"leave at once": func(t *testing.T, s results.Store) {
			join(t, s, "a", long)
			join(t, s, "b", long)
			require.NoError(t, s.Leave(deadline(t), "a"))
			require.NoError(t, s.Leave(deadline(t), "a"))
			require.NoError(t, s.Leave(deadline(t), "never"))
			require.Equal(t, []string{"b"}, join(t, s, "b", long))
		},
		"expire": func(t *testing.T, s results.Store) {
			join(t, s, "a", 300*time.Millisecond)
			require.Eventually(t, func() bool { return len(join(t, s, "b", long)) == 1 }, patience, 20*time.Millisecond)
		},
		"have names of any bytes": func(t *testing.T, s results.Store) {
			for _, member := range oddIDs {
				require.Contains(t, join(t, s, member, long), member)
			}
			require.ElementsMatch(t, oddIDs, join(t, s, oddIDs[0], long))
		},
	})
}
