package app_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// TestCallsOfTheInstallationAreListed: over all sessions and partitions, by either
// store, the oldest first.
func TestCallsOfTheInstallationAreListed(t *testing.T) {
	t.Parallel()
	nats, redis := testservers.NATS(t), testservers.Redis(t)
	for name, store := range map[string]*redisstore.Config{"jetstream": nil, "redis": {URL: redis.URL()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := startService(t)
			o := options(t, api, nats.URL())
			o.Queue.Prefix, o.Redis = "p"+prefix(name), store
			const sessions = 20 // more than are read at the same time
			for range sessions {
				o.Sessions = append(o.Sessions, api.create(t, twoCalls, nil))
			}
			d := run(t, o)
			d.awaitReady(t)
			door := d.door(t)
			var all ops.CallList
			require.Eventually(t, func() (done bool) {
				var err error
				all, err = door.CallsIn(t.Context(), string(call.Held), 1000)
				return err == nil && len(all.Calls) == 2*sessions
			}, patience, 50*time.Millisecond)
			require.False(t, all.More)
			require.True(t, slices.IsSortedFunc(all.Calls, func(a, b ops.Call) int { return a.Claimed.Compare(b.Claimed) }))
			for _, c := range all.Calls {
				require.Equal(t, "greet", c.Function)
				require.Empty(t, c.History, "not in lists")
			}
			some, err := door.CallsIn(t.Context(), ops.OpenCalls, 3)
			require.NoError(t, err)
			require.True(t, some.More)
			for i, c := range some.Calls {
				require.Equal(t, all.Calls[i].Key, c.Key)
			}
			exact, err := door.CallsIn(t.Context(), ops.OpenCalls, 2*sessions)
			require.NoError(t, err)
			require.False(t, exact.More)
			none, err := door.CallsIn(t.Context(), string(call.Parked), 0)
			require.NoError(t, err)
			require.Empty(t, none.Calls)

			startExecutorAt(t, nats.URL(), o.Queue.Prefix)
			api.awaitTurns(t, sessions)
			require.NoError(t, d.stop(t))
		})
	}
}

const twoCalls = `{"rounds":[[{"name":"greet","arguments":{}},{"name":"greet","arguments":{"n":2}}]],"say":"done"}`
