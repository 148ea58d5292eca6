package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/executor"
)

// TestContract_RedisLosesItsDataAtAnyInstant: the store is emptied again and again while
// turns of several rounds are under way, after every few steps of their calls. No result is
// lost or doubled, and no call runs twice.
func TestContract_RedisLosesItsDataAtAnyInstant(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	runs := map[string]int{}
	s := start(t, options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[c.Key.String()]++
		return c.Key.Call, nil
	})})
	opt, err := redis.ParseURL(s.redis.URL())
	require.NoError(t, err)
	client := redis.NewClient(opt)
	defer client.Close()

	const sessions, rounds, width = 6, 4, 5
	ids := make([]string, sessions)
	for i := range ids {
		var turn [][]scripted
		for r := range rounds {
			var calls []scripted
			for c := range width {
				calls = append(calls, scripted{Name: "f", CallID: fmt.Sprintf("s%d-r%d-c%d", i, r, c)})
			}
			turn = append(turn, calls)
		}
		ids[i] = s.session(script("ok", turn...), "f")
	}
	steps := func() int {
		s.count.mu.Lock()
		defer s.count.mu.Unlock()
		return len(s.count.moves)
	}
	flushes := 0
	for last := 0; s.sim.Stats().ResultsAccepted < sessions*rounds*width && flushes < 200; flushes++ {
		require.Eventually(t, func() bool {
			return steps() > last+6 || s.sim.Stats().ResultsAccepted == sessions*rounds*width
		}, patience, time.Millisecond, "work stands still")
		last = steps()
		require.NoError(t, client.FlushAll(t.Context()).Err())
	}
	require.Greater(t, flushes, 5)
	for _, id := range ids {
		s.idle(id)
		for callID, answer := range s.answers(id) {
			require.Equal(t, fmt.Sprintf("%q", callID), string(answer.Output)+string(answer.Error))
		}
	}
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, runs, sessions*rounds*width)
	for key, n := range runs {
		require.Equal(t, 1, n, key)
	}
	require.Zero(t, s.sim.Stats().Conflicts)
	s.clean()
}
