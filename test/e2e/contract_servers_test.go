package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/executor"
)

// TestContract_ServersLostForAWhile: whichever server is away for ten seconds, work goes on
// afterwards and nothing is lost or run twice.
func TestContract_ServersLostForAWhile(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"nats", "redis"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			s := start(t, options{handlers: echo(t, &runs)})
			first := s.session(script("ok", round(5)), "f")
			s.idle(first)
			stop, begin := s.nats.Kill, s.nats.Start
			if which == "redis" {
				stop, begin = s.redis.Pause, s.redis.Resume
			}
			stop()
			away := time.After(10 * time.Second)
			// A turn begins while the server is away; its session is watched already.
			err := s.api.Beta.Agents.Sessions.Events.New(t.Context(), first, openai.BetaAgentSessionEventNewParams{
				Events: []openai.AgentSessionInputParamUnion{message(script("ok", round(5)))},
			})
			require.NoError(t, err)
			<-away
			begin()
			require.Eventually(t, func() bool { return s.sim.Stats().ResultsAccepted == 10 }, patience, 20*time.Millisecond)
			s.idle(first)
			s.settled(first)
			require.EqualValues(t, 10, runs.Load())
			require.Zero(t, s.sim.Stats().Conflicts)
			s.clean()
		})
	}
}

func TestContract_RedisLosesItsData(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	release := make(chan struct{})
	s := start(t, options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		runs.Add(1)
		<-release
		return c.Key.Call, nil
	})})
	id := s.session(script("ok", round(8), []scripted{{Name: "f", CallID: "last"}}), "f")
	require.Eventually(t, func() bool { return runs.Load() == 8 }, patience, time.Millisecond)
	opt, err := redis.ParseURL(s.redis.URL())
	require.NoError(t, err)
	client := redis.NewClient(opt)
	defer client.Close()
	require.NoError(t, client.FlushAll(t.Context()).Err())
	close(release)
	s.idle(id)
	s.settled(id)
	require.EqualValues(t, 9, runs.Load(), "no call ran twice")
	require.EqualValues(t, 9, s.sim.Stats().ResultsAccepted)
	require.Zero(t, s.sim.Stats().Conflicts)
	s.clean()
}

// TestContract_NATSRestartsBeforeTheDelivery: a call that was published waits in its stream over a restart.
func TestContract_NATSRestartsBeforeTheDelivery(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	o := options{noServe: true, handlers: echo(t, &runs)}
	s := start(t, o)
	s.executor(o)() // the function is registered, and nobody is there any more
	id := s.session(script("ok", round(3)), "f")
	require.Eventually(t, func() bool { return s.left("FN_CALLS") == 3 }, patience, 10*time.Millisecond)
	s.nats.Kill()
	s.nats.Start()
	s.executor(o)
	s.idle(id)
	s.settled(id)
	require.EqualValues(t, 3, runs.Load())
	require.Zero(t, s.sim.Stats().Conflicts)
	s.clean()
}

// TestContract_ReadinessFollowsTheServers: operators see which server is missing, and one line in the log says so.
func TestContract_ReadinessFollowsTheServers(t *testing.T) {
	t.Parallel()
	i := install(t)
	d := i.dispatch("fn")
	d.awaitReady(t)
	awaitNot := func(check string) {
		require.Eventually(t, func() bool {
			status, body := d.readiness(t)
			return status == http.StatusServiceUnavailable && !strings.Contains(body, `"`+check+`":"ok"`)
		}, patience, 20*time.Millisecond, "%s is away, and the dispatcher is ready", check)
	}
	i.nats.Kill()
	awaitNot("nats")
	require.Never(t, func() bool {
		return strings.Count(d.Stderr.String(), "connection to NATS lost") > 1
	}, 2*time.Second, 50*time.Millisecond)
	d.Await(d.Stderr, "connection to NATS lost")
	i.nats.Start()
	d.awaitReady(t)
	i.redis.Kill()
	awaitNot("store")
	i.redis.Start()
	d.awaitReady(t)
	require.Equal(t, 0, d.Stop())
}
