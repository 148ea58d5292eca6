package dispatcher

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
