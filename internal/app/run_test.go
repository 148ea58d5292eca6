package app_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/app"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

const oneCall = `{"rounds":[[{"name":"greet","arguments":{}}]],"say":"done"}`

// TestSessionsAreServed walks a call through everything, once for each store and
// each way to say which sessions to watch.
func TestSessionsAreServed(t *testing.T) {
	t.Parallel()
	nats, redis := testservers.NATS(t), testservers.Redis(t)
	for name, change := range map[string]func(t *testing.T, o *app.Options, session string){
		"session, jetstream": func(_ *testing.T, o *app.Options, session string) { o.Sessions = []string{session} },
		"selector, redis": func(_ *testing.T, o *app.Options, _ string) {
			o.Redis = &redisstore.Config{URL: redis.URL()}
			o.Selectors = []sources.Selector{{Metadata: map[string]string{"team": "a"}}}
			o.PollInterval = 200 * time.Millisecond
		},
		"file, without streams": func(t *testing.T, o *app.Options, session string) {
			o.SessionsFile = writeFile(t, session+"\n")
			o.NoStream = true
			o.Dispatcher.Watchdog = 200 * time.Millisecond
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := startService(t)
			session := api.create(t, oneCall, map[string]string{"team": "a"})
			o := options(t, api, nats.URL())
			o.Queue.Prefix = "p" + prefix(name)
			change(t, &o, session)
			d := run(t, o)
			startExecutorAt(t, nats.URL(), o.Queue.Prefix)
			api.awaitTurns(t, 1)
			stats := api.Stats()
			require.EqualValues(t, 1, stats.ResultsAccepted)
			require.Zero(t, stats.DuplicateSubmissions)

			_, metrics := get(t, "http://"+d.Addr()+"/metrics")
			require.Contains(t, metrics, `callfan_calls_answered_total{function="greet",outcome="succeeded",reason="handler"} 1`)
			require.Contains(t, metrics, `callfan_partitions_owned 4`)
			functions, err := d.door(t).Functions(t.Context())
			require.NoError(t, err)
			require.Len(t, functions, 1)
			require.Equal(t, "greet", functions[0].Name)
			require.Equal(t, "greeters", functions[0].Pool)
			require.NoError(t, d.stop(t))
		})
	}
}

func TestAdminAttachesAndDetaches(t *testing.T) {
	t.Parallel()
	nats, api := testservers.NATS(t), startService(t)
	d := run(t, options(t, api, nats.URL()))
	startExecutor(t, nats.URL())
	d.awaitReady(t)
	door := d.door(t)
	session := api.create(t, oneCall, nil)
	require.NoError(t, door.Watch(t.Context(), session))
	api.awaitTurns(t, 1)
	list, err := door.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, session, list[0].ID)
	require.True(t, list[0].Watched)

	require.NoError(t, door.Unwatch(t.Context(), session))
	require.Eventually(t, func() bool {
		list, err := door.Sessions(t.Context())
		return err == nil && len(list) == 0
	}, patience, 20*time.Millisecond)
}

func TestStartsBeforeNATSAndRedis(t *testing.T) {
	t.Parallel()
	nats, redis := testservers.NATS(t), testservers.Redis(t)
	nats.Stop()
	redis.Stop()
	api := startService(t)
	session := api.create(t, oneCall, nil)
	o := options(t, api, nats.URL())
	o.Redis = &redisstore.Config{URL: redis.URL()}
	o.Sessions = []string{session}
	d := run(t, o)

	require.Eventually(t, func() bool {
		checks := d.readiness(t).Checks
		return checks["nats"] != "ok" && checks["store"] != "ok" && checks["store"] != "not open yet"
	}, patience, 20*time.Millisecond)
	status, body := get(t, "http://"+d.Addr()+"/readyz")
	require.Equal(t, 503, status)
	require.Contains(t, body, `"ready":false`)
	status, _ = get(t, "http://"+d.Addr()+"/healthz")
	require.Equal(t, 200, status, "waiting is not dying")
	require.ErrorContains(t, d.door(t).Watch(t.Context(), "sess_1"), ops.ErrNotStarted.Error())

	nats.Start()
	require.Eventually(t, func() bool { return d.readiness(t).Checks["nats"] == "ok" }, patience, 20*time.Millisecond)
	require.False(t, d.readiness(t).Ready, "Redis is still missing")
	redis.Start()
	d.awaitReady(t)
	startExecutor(t, nats.URL())
	api.awaitTurns(t, 1)
	require.NoError(t, d.stop(t))
}

func TestReadinessFollowsItsServers(t *testing.T) {
	t.Parallel()
	nats, redis := testservers.NATS(t), testservers.Redis(t, testservers.RedisAppendOnly())
	o := options(t, startService(t), nats.URL())
	o.Redis = &redisstore.Config{URL: redis.URL()}
	d := run(t, o)
	d.awaitReady(t)

	redis.Stop()
	ready := d.readiness(t)
	require.False(t, ready.Ready)
	require.Equal(t, "ok", ready.Checks["nats"])
	require.NotEqual(t, "ok", ready.Checks["store"])
	redis.Start()
	d.awaitReady(t)

	nats.Stop()
	require.Eventually(t, func() bool { return d.readiness(t).Checks["nats"] != "ok" }, patience, 20*time.Millisecond)
	require.Equal(t, "ok", d.readiness(t).Checks["store"])
	nats.Start()
	d.awaitReady(t)
}

func TestStopsWhileItWaits(t *testing.T) {
	t.Parallel()
	nats := testservers.NATS(t)
	nats.Stop()
	d := run(t, options(t, startService(t), nats.URL()))
	require.Eventually(t, func() bool { return d.Addr() != "" }, patience, 5*time.Millisecond)
	require.False(t, d.readiness(t).Ready)
	require.NoError(t, d.stop(t))
}

func TestRefusesAnUnfitStore(t *testing.T) {
	t.Parallel()
	nats, redis := testservers.NATS(t), testservers.Redis(t, testservers.RedisMaxMemoryPolicy("allkeys-lru"))
	o := options(t, startService(t), nats.URL())
	o.Redis = &redisstore.Config{URL: redis.URL()}
	d := run(t, o)
	select {
	case d.err = <-d.result:
		d.once.Do(func() {})
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	require.ErrorContains(t, d.err, "noeviction")
}

// TestReplicasShare: one goes, the other takes over at once.
func TestReplicasShare(t *testing.T) {
	t.Parallel()
	nats, api := testservers.NATS(t), startService(t)
	o := options(t, api, nats.URL())
	o.Queue.Partitions = 16
	o.Dispatcher.LeaseTTL = 9 * time.Second
	first := run(t, o)
	first.awaitReady(t)
	second := run(t, o)
	second.awaitReady(t)
	require.NoError(t, first.stop(t))
	startExecutor(t, nats.URL())
	session := api.create(t, oneCall, nil)
	require.NoError(t, second.door(t).Watch(t.Context(), session))
	api.awaitTurns(t, 1)
}
