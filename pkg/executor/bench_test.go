package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

// BenchmarkCalls measures calls that wait in the stream, through an executor, to
// their outcomes in the dispatcher's hands.
func BenchmarkCalls(b *testing.B) {
	for _, concurrency := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("concurrency=%d", concurrency), func(b *testing.B) { benchmarkCalls(b, concurrency) })
	}
}

func benchmarkCalls(b *testing.B, concurrency int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := queue.Config{URL: testservers.NATS(b).URL(), Partitions: 1, Logger: slog.New(slog.DiscardHandler)}
	conn, err := queue.Connect(ctx, cfg)
	require.NoError(b, err)
	defer conn.Close()
	require.NoError(b, conn.Provision(ctx))
	registry, err := conn.ServeRegistry(ctx)
	require.NoError(b, err)
	ex, err := executor.New(executor.Config{Queue: cfg, Pool: "tools", Concurrency: concurrency, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	require.NoError(b, executor.Handle(ex, "f", func(_ context.Context, in struct{ N int }) (string, error) { return "done", nil }))

	calls := make([]call.Dispatch, b.N)
	for n := range calls {
		calls[n] = call.Dispatch{
			Call: call.Call{
				Key:      call.Key{Session: "s", Turn: "t", Call: fmt.Sprintf("call_%d", n)},
				Function: "f", Arguments: json.RawMessage(`{"N":1}`),
			},
			Attempt: 1, Handover: 1, Nonce: fmt.Sprintf("1-%d", n), Timeout: 20 * time.Second, Deadline: time.Now().Add(10 * time.Minute),
		}
	}
	done := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { done <- ex.Run(running) }()
	require.Eventually(b, func() bool { _, there := registry.Function("f"); return there }, 10*time.Second, time.Millisecond)
	var outcomes atomic.Int64
	all, consumed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(consumed)
		_ = conn.Consume(ctx, 0, func(batch []call.Delivered) {
			for _, d := range batch {
				d.Ack()
			}
			if outcomes.Add(int64(len(batch))) == int64(b.N) {
				close(all)
			}
		})
	}()
	b.ResetTimer()
	for _, err := range conn.Publish(ctx, calls) {
		require.NoError(b, err)
	}
	select {
	case <-all:
	case <-time.After(2 * time.Minute):
		require.Fail(b, "outcomes are missing", "%d of %d", outcomes.Load(), b.N)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	stop()
	require.NoError(b, <-done)
	cancel()
	<-consumed
}
