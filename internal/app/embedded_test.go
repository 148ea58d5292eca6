package app_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// TestEmbedded: what the embedding program opened is used, told and left open.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	nats, redis, api := testservers.NATS(t), testservers.Redis(t), startService(t)
	o := options(t, api, nats.URL())
	o.Listen = ""
	conn, err := queue.Connect(t.Context(), o.Queue)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	store, err := redisstore.New(t.Context(), redisstore.Config{URL: redis.URL(), Partitions: o.Queue.Partitions})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	seen := &recorder{}
	o.Conn, o.Store, o.Observer = conn, store, seen
	o.Sessions = []string{api.create(t, oneCall, nil)}

	d := run(t, o)
	startExecutor(t, nats.URL())
	select {
	case <-d.Started():
	case <-time.After(patience):
		t.Fatal("it did not start")
	}
	api.awaitTurns(t, 1)
	require.Eventually(t, func() bool { return d.Ready(t.Context()) == nil }, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return seen.last() == call.Settled }, patience, 20*time.Millisecond)
	require.Empty(t, d.Addr())
	require.NoError(t, d.stop(t))
	require.NoError(t, conn.Ready(t.Context()))
	require.NoError(t, store.Ping(t.Context()))
}

// recorder remembers the latest state that a call entered.
type recorder struct {
	mu    sync.Mutex
	state call.State
}

func (r *recorder) last() call.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

func (r *recorder) Transition(t dispatcher.Transition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = t.To
}

func (*recorder) Request(string, string, time.Duration) {}
func (*recorder) Batch(int, int)                        {}
func (*recorder) Count(string)                          {}
func (*recorder) Owned(int, int)                        {}
