package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

func TestRedisAbsentAtStart(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	server.Stop()
	_, err := redisstore.New(context.Background(), redisstore.Config{URL: server.URL()})
	require.Error(t, err)
	var evicts *redisstore.EvictionError
	require.NotErrorAs(t, err, &evicts)
}

func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t, testservers.RedisAppendOnly())
	s := open(t, redisstore.Config{URL: server.URL()})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	before := claim(t, s, "call_1")

	server.Stop()
	_, err := s.Claim(context.Background(), 1, claims("call_1"))
	require.Error(t, err)
	require.Error(t, s.Ping(context.Background()))

	server.Start() // with its data and without our scripts
	var after []results.Record
	require.Eventually(t, func() bool {
		after, err = s.Claim(context.Background(), 1, claims("call_1"))
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, before[0].ClaimedAt, after[0].ClaimedAt)
	require.NoError(t, s.Ping(context.Background()))
}

func TestScriptsAreFlushed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testservers.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	s := open(t, redisstore.Config{URL: server.URL()})
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, client.Close())
	})
	for i := range 3 {
		require.NoError(t, client.ScriptFlush(ctx).Err())
		var batch []results.Completion
		var fences []uint64
		for n := range 100 { // many commands of one pipeline find no script
			_, c := completions([]byte("1"), fmt.Sprintf("call_%d", n))
			c[0].Key.Session, c[0].Adopt = fmt.Sprintf("sess_%d_%d", i, n), true
			batch, fences = append(batch, c[0]), append(fences, 1)
		}
		answers, err := s.Complete(ctx, fences, batch)
		require.NoError(t, err)
		for _, a := range answers {
			require.Equal(t, results.Saved, a.Verdict)
		}
		require.NoError(t, client.ScriptFlush(ctx).Err())
		_, err = s.Acquire(ctx, "a", []int{1, 2, 3}, time.Minute)
		require.NoError(t, err)
	}
}

func TestRedisHangs(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	s := open(t, redisstore.Config{URL: server.URL()})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	claim(t, s, "call_1")

	server.Pause()
	for _, request := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := s.Claim(ctx, 1, claims("call_2")); return err },
		func(ctx context.Context) error { _, err := s.Get(ctx, []call.Key{key("call_1")}); return err },
		func(ctx context.Context) error { return s.Ping(ctx) },
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		start := time.Now()
		require.ErrorIs(t, request(ctx), context.DeadlineExceeded)
		require.Less(t, time.Since(start), 3*time.Second)
		cancel()
	}
	server.Resume()
	require.Equal(t, call.Seen, claim(t, s, "call_2")[0].State)
}

func TestAFullRedisRefusesAndEndsCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testservers.Redis(t, testservers.RedisArgs("--maxmemory", "12mb"))
	s := open(t, redisstore.Config{URL: server.URL()})
	t.Cleanup(func() { require.NoError(t, s.Close()) })

	output := make([]byte, 64<<10)
	var saved []string
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 1000, "Redis never fills up")
		id := fmt.Sprintf("call_%d", n)
		fences, c := completions(output, id)
		c[0].Adopt = true
		if _, err = s.Complete(ctx, fences, c); err == nil {
			saved = append(saved, id)
		}
	}
	require.ErrorIs(t, err, results.ErrFull)
	err = nil
	for n := 0; err == nil; n++ { // what is small may still fit
		require.Less(t, n, 100_000, "Redis never fills up")
		_, err = s.Claim(ctx, 1, claims(fmt.Sprintf("call_small_%d", n)))
	}
	require.ErrorIs(t, err, results.ErrFull)
	require.NoError(t, s.Ping(ctx))

	// What was saved is still there, and can be submitted and ended.
	records, err := s.Get(ctx, []call.Key{key(saved[0])})
	require.NoError(t, err)
	require.Len(t, records[0].Result.Output, len(output))
	for _, to := range []call.State{call.Submitted, call.Settled} {
		moves := make([]results.Move, len(saved))
		for i, id := range saved {
			moves[i] = results.Move{Key: key(id), To: to}
		}
		moved, err := s.Move(ctx, 1, moves)
		require.NoError(t, err)
		for _, m := range moved {
			require.Equal(t, results.Moved{Done: true, State: to}, m)
		}
	}
	claim(t, s, "call_new")
}
