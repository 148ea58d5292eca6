package redisstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// user makes a Redis user who may do everything but what rules take away.
func user(t *testing.T, server *testservers.RedisServer, name string, rules ...string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	args := []any{"ACL", "SETUSER", name, "on", ">secret", "~*", "&*", "+@all"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	require.NoError(t, client.Do(context.Background(), args...).Err())
}

func TestAnEvictingServerIsRefused(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t, testservers.RedisMaxMemoryPolicy("allkeys-lru"))
	user(t, server, "limited", "-config")
	for _, config := range []redisstore.Config{
		{URL: server.URL()},
		{URL: server.URL(), Username: "limited", Password: "secret"},
		{Universal: &redis.UniversalOptions{Addrs: []string{server.Addr()}}},
	} {
		_, err := redisstore.New(context.Background(), config)
		var evicts *redisstore.EvictionError
		require.ErrorAs(t, err, &evicts)
		require.Equal(t, "allkeys-lru", evicts.Policy)
		require.ErrorContains(t, err, "CONFIG SET maxmemory-policy noeviction")
	}
}

func TestUsersWithFewRights(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	user(t, server, "noconfig", "-config")
	user(t, server, "noload", "-script|load")
	user(t, server, "blind", "-config", "-info")

	for _, name := range []string{"noconfig", "noload"} {
		s := open(t, redisstore.Config{URL: server.URL(), Username: name, Password: "secret", Prefix: name})
		claim(t, s, "call_1")
		require.NoError(t, s.Close())
	}
	_, err := redisstore.New(context.Background(), redisstore.Config{URL: server.URL(), Username: "blind", Password: "secret"})
	var evicts *redisstore.EvictionError
	require.ErrorAs(t, err, &evicts)
	require.Empty(t, evicts.Policy)
	require.ErrorContains(t, err, "allow the user CONFIG GET or INFO")
}

func TestErrorsDoNotTellPasswords(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	for _, config := range []redisstore.Config{
		{URL: "redis://user:hunter2@host:port"},
		{URL: "redis://:hunter2/x@host"},
		{URL: "http://:hunter2@host"},
		{URL: "\x00hunter2"},
		{URL: "redis://user:hunter2@" + server.Addr()},
		{URL: server.URL(), Username: "user", Password: "hunter2"},
	} {
		_, err := redisstore.New(context.Background(), config)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err := redisstore.New(context.Background(), redisstore.Config{URL: "http://host"})
	require.ErrorIs(t, err, redisstore.ErrInvalidURL)
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	testservers.Redis(t, testservers.RedisArgs("--unixsocket", socket))
	s := open(t, redisstore.Config{URL: "unix://" + socket})
	claim(t, s, "call_1")
	require.NoError(t, s.Close())
}

func TestABroughtClientStaysOpen(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	s := open(t, redisstore.Config{Client: client})
	claim(t, s, "call_1")
	require.NoError(t, s.Close())
	require.NoError(t, client.Ping(context.Background()).Err())
	require.NoError(t, client.Close())
}

func key(id string) call.Key { return call.Key{Session: "sess_1", Turn: "turn_1", Call: id} }

func claims(ids ...string) []results.Claim {
	out := make([]results.Claim, len(ids))
	for i, id := range ids {
		out[i] = results.Claim{Key: key(id), Function: "get_weather", State: call.Seen}
	}
	return out
}

func claim(t testing.TB, s results.Store, ids ...string) []results.Record {
	t.Helper()
	records, err := s.Claim(context.Background(), 1, claims(ids...))
	require.NoError(t, err)
	return records
}

func completions(output []byte, ids ...string) (fences []uint64, out []results.Completion) {
	for _, id := range ids {
		fences = append(fences, 1)
		out = append(out, results.Completion{
			Key: key(id), Function: "get_weather", OutcomeID: "o_" + id, Attempt: 1,
			Result: call.Result{Success: true, Output: output, Reason: call.ReasonHandler},
		})
	}
	return fences, out
}
