package test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

// Executors are started and stopped as KEDA would, by what the monitoring port says and what the chart's ScaledObject
// asks for, from nothing to the maximum and back, twice. A second of Kubernetes takes 10 ms.
func TestScalingByTheQueue(t *testing.T) {
	t.Parallel()
	const calls, more = 120, 10
	s := &scaler{second: 10 * time.Millisecond}
	for _, o := range render(t, file(t, "keda"), "executors: {tools: {concurrency: 4, autoscaling: {maxReplicas: 6}}}").of("ScaledObject") {
		if o.Component == "executor-tools" {
			require.NoError(t, decodeInto(o, &s.scaledObject))
		}
	}
	nats := testservers.NATS(t, testservers.NATSMonitoring())
	d := newDispatcher(t, nats.URL())
	pool := &replicas{t: t, url: nats.URL(), calls: map[string]int{}}
	t.Cleanup(func() { pool.set(0) })
	require.NoError(t, pool.executor().Register(t.Context()), "as the job does that the chart makes")

	d.publish(t, 0, calls)
	require.Equal(t, calls, s.lag(t, nats.MonitorURL()), "calls that wait for nobody are counted")
	highest := follow(t, s, nats.MonitorURL(), pool, func() bool { return d.count() == calls })
	require.Equal(t, s.Spec.MaxReplicaCount, highest)

	// A few calls wake one replica or two.
	d.publish(t, calls, more)
	highest = follow(t, s, nats.MonitorURL(), pool, func() bool { return d.count() == calls+more })
	require.GreaterOrEqual(t, highest, 1)
	require.LessOrEqual(t, highest, 3)
	for id, runs := range pool.calls {
		require.Equal(t, 1, runs, "%s: a replica that is taken away finishes what it runs", id)
	}
}

// follow scales until every call has come back and there is no replica, and gives the most that there were.
func follow(t *testing.T, s *scaler, monitoring string, pool *replicas, done func() bool) (highest int) {
	t.Helper()
	poll := time.NewTicker(s.seconds(s.Spec.PollingInterval))
	defer poll.Stop()
	deadline := time.After(30 * time.Second)
	for {
		lag := s.lag(t, monitoring)
		want := s.scale(t, lag, time.Now())
		highest = max(highest, want)
		pool.set(want)
		if lag == 0 && want == 0 && done() {
			return highest
		}
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("%d calls are left with %d replicas", lag, want)
		}
	}
}

// replicas are executors of the pool tools.
type replicas struct {
	t       *testing.T
	url     string
	running []func()

	mu    sync.Mutex
	calls map[string]int
}

func (r *replicas) executor() *executor.Executor {
	r.t.Helper()
	ex, err := executor.New(executor.Config{Pool: "tools", Concurrency: 4, Queue: queue.Config{URL: r.url}, Logger: quiet(r.t)})
	require.NoError(r.t, err)
	require.NoError(r.t, executor.HandleRaw(ex, "echo", func(_ context.Context, c executor.Call) (executor.Output, error) {
		r.mu.Lock()
		r.calls[c.Key.String()]++
		r.mu.Unlock()
		<-time.After(150 * time.Millisecond)
		return executor.Text("done"), nil
	}))
	return ex
}

// set starts or stops as many as are missing or too many. Who is stopped finishes its calls while the others go on.
func (r *replicas) set(n int) {
	for len(r.running) < n {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		ex := r.executor()
		go func() { defer close(ended); _ = ex.Run(ctx) }()
		r.t.Cleanup(func() { stop(); <-ended })
		r.running = append(r.running, stop)
	}
	for len(r.running) > n {
		last := len(r.running) - 1
		r.running[last]()
		r.running = r.running[:last]
	}
}

// dispatcherSide publishes calls and collects what becomes of them.
type dispatcherSide struct {
	conn   *queue.Conn
	nonces call.Nonces

	mu       sync.Mutex
	outcomes map[call.Key]bool
	// handovers count how often a call was published.
	handovers map[call.Key]int
}

func newDispatcher(t *testing.T, url string) *dispatcherSide {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	d := &dispatcherSide{outcomes: map[call.Key]bool{}, handovers: map[call.Key]int{}}
	var err error
	d.conn, err = queue.Connect(ctx, queue.Config{URL: url, Partitions: 1, Logger: quiet(t)})
	require.NoError(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended; d.conn.Close() })
	require.NoError(t, d.conn.Provision(ctx))
	secret, err := d.conn.Secret(ctx)
	require.NoError(t, err)
	d.nonces = call.NewNonces(secret)
	_, err = d.conn.ServeRegistry(ctx)
	require.NoError(t, err)
	go func() {
		defer close(ended)
		_ = d.conn.Consume(ctx, 0, func(batch []call.Delivered) {
			for _, delivered := range batch {
				switch {
				case delivered.Invalid != nil:
				case delivered.Outcome.Kind == call.Success:
					d.mu.Lock()
					d.outcomes[delivered.Outcome.Key] = true
					d.mu.Unlock()
				case delivered.Outcome.Kind == call.Released: // taken by a replica that was stopping
					_ = d.conn.Publish(ctx, []call.Dispatch{d.dispatch(delivered.Outcome.Key)})
				}
				delivered.Ack()
			}
		})
	}()
	return d
}

func (d *dispatcherSide) publish(t *testing.T, from, n int) {
	t.Helper()
	dispatches := make([]call.Dispatch, n)
	for i := range dispatches {
		dispatches[i] = d.dispatch(call.Key{Session: "s", Turn: "t", Call: fmt.Sprintf("call_%d", from+i)})
	}
	for _, err := range d.conn.Publish(t.Context(), dispatches) {
		require.NoError(t, err)
	}
}

// dispatch is the next hand-over of a call.
func (d *dispatcherSide) dispatch(key call.Key) call.Dispatch {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handovers[key]++
	return call.Dispatch{
		Call: call.Call{Key: key, Function: "echo", Arguments: []byte(`{}`)}, Attempt: 1, Handover: d.handovers[key],
		Nonce: d.nonces.For(key, call.Token("echo"), 1), Timeout: 30 * time.Second, Deadline: time.Now().Add(2 * time.Minute),
	}
}

// count is the number of calls that came back with success.
func (d *dispatcherSide) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.outcomes)
}

func quiet(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
