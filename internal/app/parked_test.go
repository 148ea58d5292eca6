package app_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// TestParkedCallsOutliveTheirDispatcher: a call is parked at one replica and decided at
// the next, which counts it meanwhile.
func TestParkedCallsOutliveTheirDispatcher(t *testing.T) {
	t.Parallel()
	server, redis := testservers.NATS(t), testservers.Redis(t)
	for name, store := range map[string]*redisstore.Config{"jetstream": nil, "redis": {URL: redis.URL()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := startService(t)
			o := options(t, api, server.URL())
			o.Queue.Prefix, o.Redis = "p"+prefix(name), store
			session := api.create(t, oneCall, nil)
			o.Sessions = []string{session}
			o.Dispatcher.MaxResultBytes = 1 << 20
			first := run(t, o)

			conn, err := queue.Connect(t.Context(), queue.Config{URL: server.URL(), Prefix: o.Queue.Prefix, Logger: logger(t)})
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			binding, err := conn.Register(t.Context(), queue.Registration{Pool: "greeters", Functions: []call.Function{
				{Name: "greet", Policy: call.Policy{OnUncertain: call.UncertainPark}},
			}})
			require.NoError(t, err)
			puller, err := conn.Bind(t.Context(), binding)
			require.NoError(t, err)
			defer puller.Close()
			require.NoError(t, puller.Pull(t.Context(), 1, func(taken *queue.Taken) {
				require.NoError(t, conn.Report(t.Context(), taken.Dispatch, call.Outcome{Kind: call.Uncertain, Reason: "no trace", Executor: "one"}))
				require.NoError(t, taken.Ack())
			}))
			parked := func(d *running) (c ops.Call) {
				t.Helper()
				require.Eventually(t, func() bool {
					list, err := d.door(t).CallsIn(t.Context(), string(call.Parked), 0)
					if err != nil || len(list.Calls) != 1 {
						return false
					}
					_, metrics := get(t, "http://"+d.Addr()+"/metrics")
					sessions, err := d.door(t).Sessions(t.Context())
					c = list.Calls[0]
					return err == nil && parkedLine.MatchString(metrics) && len(sessions) == 1 && sessions[0].Parked == 1
				}, patience, 20*time.Millisecond)
				return c
			}
			parked(first)
			require.NoError(t, first.stop(t))

			second := run(t, o)
			c := parked(second)
			require.Equal(t, session, c.Session)
			shown, err := second.door(t).Call(t.Context(), c.Key)
			require.NoError(t, err)
			last := shown.History[len(shown.History)-1]
			require.Equal(t, call.Parked, last.State)
			require.Contains(t, last.Note, "no trace")
			require.Contains(t, shown.Explanation, "no trace")
			require.WithinDuration(t, shown.Claimed, shown.History[0].At, time.Second)
			large := ops.Decision{Output: []byte(`"` + strings.Repeat("a", 2<<20) + `"`)}
			require.ErrorContains(t, second.door(t).Decide(t.Context(), c.Key, large), "the result cannot be submitted: result too large (2097154 bytes, limit 1048576)")
			require.NoError(t, second.door(t).Decide(t.Context(), c.Key, ops.Decision{Output: []byte(`"by \u003chand>"`), By: "mary"}))
			api.awaitTurns(t, 1)
			_, metrics := get(t, "http://"+second.Addr()+"/metrics")
			require.Contains(t, metrics, `callfan_calls_parked 0`)
			require.Contains(t, metrics, `callfan_calls_answered_total{function="greet",outcome="succeeded",reason="operator"} 1`)
			require.ErrorContains(t, second.door(t).Decide(t.Context(), c.Key, ops.Decision{Rerun: true}), "nothing is left to decide")
			require.NoError(t, second.stop(t))
		})
	}
}

var parkedLine = regexp.MustCompile(`(?m)^callfan_calls_parked 1$`)
