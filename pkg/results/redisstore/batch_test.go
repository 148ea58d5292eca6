package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// pipelines counts the pipelines of a client and their commands.
type pipelines struct{ flushes, commands, largest atomic.Int64 }

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if name := commands[0].Name(); name == "evalsha" || name == "eval" { // not a handshake
			p.flushes.Add(1)
			p.commands.Add(int64(len(commands)))
			p.largest.Store(max(p.largest.Load(), int64(len(commands))))
		}
		return next(ctx, commands)
	}
}

func counted(t *testing.T, config redisstore.Config) (*redisstore.Store, *pipelines) {
	t.Helper()
	server := testservers.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	count := &pipelines{}
	client.AddHook(count)
	config.Client = client
	s := open(t, config)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, client.Close())
	})
	return s, count
}

func TestATurnIsOneScript(t *testing.T) {
	t.Parallel()
	s, count := counted(t, redisstore.Config{})
	ids := make([]string, 32)
	for i := range ids {
		ids[i] = fmt.Sprintf("call_%d", i)
	}
	claim(t, s, ids...)
	require.EqualValues(t, 1, count.commands.Load())
	fences, c := completions([]byte("1"), ids...)
	_, err := s.Complete(context.Background(), fences, c)
	require.NoError(t, err)
	require.EqualValues(t, 2, count.commands.Load())
	require.EqualValues(t, 2, count.flushes.Load())
}

func TestConcurrentCallersSharePipelines(t *testing.T) {
	t.Parallel()
	s, count := counted(t, redisstore.Config{BatchSize: 64})
	const callers = 2000
	errs := make([]error, callers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			<-start
			k := call.Key{Session: fmt.Sprintf("sess_%d", i), Turn: "turn_1", Call: "call_1"}
			records, err := s.Claim(context.Background(), 1, []results.Claim{{Key: k, Function: "f", State: call.Seen}})
			if err == nil && records[0].Key != k {
				err = fmt.Errorf("%s got the answer of %s", k, records[0].Key)
			}
			errs[i] = err
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, callers, count.commands.Load())
	require.LessOrEqual(t, count.largest.Load(), int64(64))
	require.Less(t, count.flushes.Load(), int64(callers/4), "callers do not share pipelines")
}

func TestARequestIsSplitAtTheBatchSize(t *testing.T) {
	t.Parallel()
	s, count := counted(t, redisstore.Config{BatchSize: 10})
	var batch []results.Claim
	for i := range 95 {
		k := call.Key{Session: "sess_1", Turn: fmt.Sprintf("turn_%d", i), Call: "call_1"}
		batch = append(batch, results.Claim{Key: k, Function: "f", State: call.Seen})
	}
	records, err := s.Claim(context.Background(), 1, batch)
	require.NoError(t, err)
	for i, r := range records {
		require.Equal(t, batch[i].Key, r.Key)
	}
	require.EqualValues(t, 10, count.flushes.Load())
	require.EqualValues(t, 10, count.largest.Load())
}

// TestAWaiterLeaves holds all lanes up and cancels a caller that waits behind
// them: it leaves at once, and the others get their answers.
func TestAWaiterLeaves(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	s := open(t, redisstore.Config{URL: server.URL(), Lanes: 1})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	claim(t, s, "call_0")

	server.Pause()
	held := make(chan error, 1)
	go func() {
		_, err := s.Claim(context.Background(), 1, claims("call_1"))
		held <- err
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Claim(ctx, 1, claims("call_2"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	server.Resume()
	require.NoError(t, <-held)
	require.NoError(t, s.Ping(context.Background()))
}
