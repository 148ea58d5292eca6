package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func testAttached(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"nothing at first": func(t *testing.T, s results.Store) {
			sessions, version, err := s.Attached(deadline(t), 0, "")
			require.NoError(t, err)
			require.Empty(t, sessions)
			again, same, err := s.Attached(deadline(t), 0, version)
			require.NoError(t, err)
			require.Nil(t, again)
			require.Equal(t, version, same)
		},
		"sessions go to their partitions": func(t *testing.T, s results.Store) {
			want := map[int][]string{}
			var all []string
			for i := range 200 {
				id := fmt.Sprintf("sess_%d", i)
				p := call.Partition(id, results.DefaultPartitions)
				want[p], all = append(want[p], id), append(all, id)
			}
			all = append(all, oddIDs...)
			for _, id := range oddIDs {
				p := call.Partition(id, results.DefaultPartitions)
				want[p] = append(want[p], id)
			}
			require.NoError(t, s.Attach(deadline(t), all...))
			for p := range results.DefaultPartitions {
				sessions, _, err := s.Attached(deadline(t), p, "")
				require.NoError(t, err)
				require.ElementsMatch(t, want[p], sessions)
			}
		},
		"the version changes with the list": func(t *testing.T, s results.Store) {
			p := call.Partition(session, results.DefaultPartitions)
			seenVersions := map[string]bool{}
			version := ""
			expect := func(changed bool, want ...string) {
				t.Helper()
				sessions, now, err := s.Attached(deadline(t), p, version)
				require.NoError(t, err)
				if !changed {
					require.Nil(t, sessions)
					require.Equal(t, version, now)
					return
				}
				require.NotNil(t, sessions)
				require.ElementsMatch(t, want, sessions)
				require.False(t, seenVersions[now], "a version comes back")
				seenVersions[now], version = true, now
			}
			expect(true)
			require.NoError(t, s.Attach(deadline(t), session))
			expect(true, session)
			require.NoError(t, s.Attach(deadline(t), session))
			expect(false)
			require.NoError(t, s.Detach(deadline(t), "sess_other"))
			expect(false)
			require.NoError(t, s.Detach(deadline(t), session))
			expect(true)
			require.NoError(t, s.Detach(deadline(t), session))
			expect(false)
			require.NoError(t, s.Attach(deadline(t), session))
			expect(true, session)
		},
		"no sessions change nothing": func(t *testing.T, s results.Store) {
			require.NoError(t, s.Attach(deadline(t)))
			require.NoError(t, s.Detach(deadline(t)))
		},
	})
	t.Run("concurrent changes are all kept", func(t *testing.T) {
		t.Parallel()
		one, two := b.pair(t)
		p := call.Partition(session, results.DefaultPartitions)
		var same []string // sessions of one partition
		for i := 0; len(same) < 16; i++ {
			if id := fmt.Sprintf("sess_%d", i); call.Partition(id, results.DefaultPartitions) == p {
				same = append(same, id)
			}
		}
		errs := make([]error, len(same))
		var wg sync.WaitGroup
		for i, id := range same {
			s := one
			if i%2 == 1 {
				s = two
			}
			wg.Go(func() { errs[i] = s.Attach(context.Background(), id) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		sessions, _, err := one.Attached(deadline(t), p, "")
		require.NoError(t, err)
		require.ElementsMatch(t, same, sessions)
	})
}
