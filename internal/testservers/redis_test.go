package testservers_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
)

func redisClient(t *testing.T, server *testservers.RedisServer) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	options.MaxRetries, options.DialerRetries = -1, 1
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func TestRedisDefaults(t *testing.T) {
	t.Parallel()
	client := redisClient(t, testservers.Redis(t))
	for key, want := range map[string]string{
		"maxmemory-policy": "noeviction", "appendonly": "no", "save": "", "bind": "127.0.0.1",
	} {
		got, err := client.ConfigGet(t.Context(), key).Result()
		require.NoError(t, err)
		require.Equal(t, want, got[key], key)
	}
}

func TestRedisOptions(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t, testservers.RedisMaxMemoryPolicy("allkeys-lru"), testservers.RedisArgs("--maxmemory", "10mb"))
	got, err := redisClient(t, server).ConfigGet(t.Context(), "maxmemory*").Result()
	require.NoError(t, err)
	require.Equal(t, "allkeys-lru", got["maxmemory-policy"])
	require.Equal(t, "10485760", got["maxmemory"])
}

func TestRedisWithPasswordBecomesReady(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t, testservers.RedisArgs("--requirepass", "secret"))
	require.ErrorContains(t, redisClient(t, server).Ping(t.Context()).Err(), "NOAUTH")
}

func TestRedisComesBackOnTheSamePort(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testservers.RedisServer){
		"stop": (*testservers.RedisServer).Stop, "kill": (*testservers.RedisServer).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testservers.Redis(t, testservers.RedisAppendOnly())
			client := redisClient(t, server)
			require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())

			end(server)
			require.Error(t, client.Ping(t.Context()).Err())
			end(server) // a second time does nothing

			server.Start()
			require.Equal(t, "value", client.Get(t.Context(), "key").Val())
		})
	}
}

func TestRedisPauseHoldsAnswersUntilResume(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	client := redisClient(t, server)
	require.NoError(t, client.Ping(t.Context()).Err())

	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, client.Ping(ctx).Err(), os.ErrDeadlineExceeded)

	server.Resume()
	require.NoError(t, client.Ping(t.Context()).Err())
}

func TestRedisStopsWhilePaused(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	server.Pause()
	server.Stop()
	require.Error(t, redisClient(t, server).Ping(t.Context()).Err())
}

func TestRedisMissingNamesTheRemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	failure := fatal(t, func(t testing.TB) { testservers.Redis(t) })
	require.Contains(t, failure, "apt-get install redis-server")
	require.Contains(t, failure, "make deps")
}

func TestRedisThatCannotStartShowsItsLog(t *testing.T) {
	t.Parallel()
	failure := fatal(t, func(t testing.TB) { testservers.Redis(t, testservers.RedisArgs("--no-such-option", "1")) })
	require.Contains(t, failure, "the process ended")
	require.Contains(t, failure, "no-such-option")
}
