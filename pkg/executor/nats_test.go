package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

// installation is a nats-server and the dispatcher's side of the queue.
type installation struct {
	t      *testing.T
	server *testservers.NATSServer
	cfg    queue.Config
	conn   *queue.Conn
	reg    *queue.Registry

	mu       sync.Mutex
	outcomes []call.Delivered
	standing call.Standing
}

func install(t *testing.T, opts ...testservers.NATSOption) *installation {
	t.Helper()
	i := &installation{t: t, server: testservers.NATS(t, opts...), standing: call.StandingPending}
	i.cfg = queue.Config{URL: i.server.URL(), Partitions: 1, AckWait: time.Second, Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	i.conn, err = queue.Connect(ctx, i.cfg)
	require.NoError(t, err)
	require.NoError(t, i.conn.Provision(ctx))
	i.reg, err = i.conn.ServeRegistry(ctx)
	require.NoError(t, err)
	require.NoError(t, i.conn.ServeOutcomes(ctx, func(context.Context, call.Question) (call.Standing, error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.standing, nil
	}))
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		_ = i.conn.Consume(ctx, 0, func(batch []call.Delivered) {
			i.mu.Lock()
			defer i.mu.Unlock()
			for _, d := range batch {
				i.outcomes = append(i.outcomes, d)
				d.Ack()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-consumed
		i.conn.Close()
	})
	return i
}

// dispatch publishes the calls of a function, once it is registered.
func (i *installation) dispatch(calls ...call.Dispatch) {
	i.t.Helper()
	require.Eventually(i.t, func() bool {
		_, there := i.reg.Function(calls[0].Function)
		return there
	}, 10*time.Second, 5*time.Millisecond, "the function is not registered")
	for _, err := range i.conn.Publish(i.t.Context(), calls) {
		require.NoError(i.t, err)
	}
}

func newCall(function string, n int, arguments string) call.Dispatch {
	return call.Dispatch{
		Call: call.Call{
			Key:      call.Key{Session: "sess_1", Turn: "turn_1", Call: fmt.Sprintf("call_%d", n)},
			Function: function, Arguments: json.RawMessage(arguments),
		},
		Attempt: 1, Handover: 1, Nonce: fmt.Sprintf("1-nonce%d", n), Timeout: 20 * time.Second, Deadline: time.Now().Add(time.Minute),
	}
}

// await gives the outcomes once there are n.
func (i *installation) await(n int) []call.Outcome {
	i.t.Helper()
	var got []call.Outcome
	require.Eventually(i.t, func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		got = got[:0]
		for _, d := range i.outcomes {
			require.NoError(i.t, d.Invalid)
			got = append(got, d.Outcome)
		}
		return len(got) >= n
	}, 20*time.Second, 5*time.Millisecond, "outcomes are missing")
	require.Len(i.t, got, n)
	return got
}

// left is the number of calls in the stream.
func (i *installation) left() uint64 {
	i.t.Helper()
	stream, err := i.conn.JetStream().Stream(i.t.Context(), "FN_CALLS")
	require.NoError(i.t, err)
	return stream.CachedInfo().State.Msgs
}

// consumer is the state of the pool's consumer, empty while there is none.
func (i *installation) consumer() jetstream.ConsumerInfo {
	c, err := i.conn.JetStream().Consumer(i.t.Context(), "FN_CALLS", "pool_tools")
	if err != nil {
		return jetstream.ConsumerInfo{}
	}
	return *c.CachedInfo()
}

func (i *installation) awaitEmpty() {
	i.t.Helper()
	require.Eventually(i.t, func() bool { return i.left() == 0 }, 10*time.Second, 10*time.Millisecond, "calls are left in the stream")
}

type runningExecutor struct {
	*executor.Executor
	stop func()
	done chan error
}

// run starts an executor after add gave it functions; it is stopped with the test.
func (i *installation) run(cfg executor.Config, add func(*executor.Executor) error) *runningExecutor {
	i.t.Helper()
	cfg.Queue, cfg.Pool = i.cfg, "tools"
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	ex, err := executor.New(cfg)
	require.NoError(i.t, err)
	require.NoError(i.t, add(ex))
	ctx, cancel := context.WithCancel(context.Background())
	r := &runningExecutor{Executor: ex, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- ex.Run(ctx); close(r.done) }()
	i.t.Cleanup(func() {
		cancel()
		for range r.done { // the test looked at the error, if it wanted to
		}
	})
	return r
}

func sleeper(d time.Duration, runs *atomic.Int64, opts ...executor.Option) func(*executor.Executor) error {
	return func(ex *executor.Executor) error {
		return executor.Handle(ex, "sleep", func(ctx context.Context, _ struct{}) (string, error) {
			runs.Add(1)
			select {
			case <-time.After(d):
				return "slept", nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}, opts...)
	}
}

func TestNATSArgumentsArriveAsTheVeryBytes(t *testing.T) {
	t.Parallel()
	i := install(t)
	hostile := []string{
		`{"n":9007199254740993}`, `{"n":1e400}`, `{"a":1,"a":2}`, `{"t":"<a&b> \u2028"}`, `{ "b" : 1 , "a":[ ] }`, `{"t":"\ud800 \u0000"}`,
		`{"d":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, `{"t":"` + strings.Repeat("x", 1<<20) + `"}`,
	}
	name := "wetter, heute *>\r\n🌧"
	i.run(executor.Config{}, func(ex *executor.Executor) error {
		return executor.HandleRaw(ex, name, func(_ context.Context, c executor.Call) (executor.Output, error) {
			return executor.Text(string(c.Arguments)), nil
		})
	})
	calls := make([]call.Dispatch, 0, len(hostile))
	for n, arguments := range hostile {
		calls = append(calls, newCall(name, n, arguments))
	}
	i.dispatch(calls...)
	for _, o := range i.await(len(hostile)) {
		var n int
		_, err := fmt.Sscanf(o.Key.Call, "call_%d", &n)
		require.NoError(t, err)
		var text string
		require.NoError(t, json.Unmarshal(o.Output, &text))
		require.Equal(t, hostile[n], text)
	}
}

func TestNATSOutputBeyondMaxPayloadIsAFailure(t *testing.T) {
	t.Parallel()
	i := install(t, testservers.NATSMaxPayload(128<<10))
	i.run(executor.Config{}, func(ex *executor.Executor) error {
		return executor.Handle(ex, "big", func(_ context.Context, in struct{ N int }) (string, error) { return strings.Repeat("x", in.N), nil })
	})
	i.dispatch(newCall("big", 0, `{"N":131072}`), newCall("big", 1, `{"N":130000}`))
	got := map[string]call.Outcome{}
	for _, o := range i.await(2) {
		got[o.Key.Call] = o
	}
	require.Equal(t, call.ReasonTooLarge, got["call_0"].Cause)
	require.Regexp(t, `^result too large \(13\d{4} bytes, limit 131072\)$`, got["call_0"].Error)
	require.Equal(t, call.Success, got["call_1"].Kind)
	i.awaitEmpty()
}

func TestNATSStopSettlesEveryCall(t *testing.T) {
	t.Parallel()
	i := install(t)
	var runs atomic.Int64
	first := i.run(executor.Config{Concurrency: 3}, sleeper(1500*time.Millisecond, &runs))
	var calls []call.Dispatch
	for n := range 8 {
		calls = append(calls, newCall("sleep", n, `{}`))
	}
	i.dispatch(calls...)
	require.Eventually(t, func() bool { return runs.Load() == 3 }, 20*time.Second, time.Millisecond)
	first.stop()
	require.NoError(t, <-first.done)
	require.Len(t, i.await(3), 3, "running calls were finished")
	i.run(executor.Config{}, sleeper(time.Millisecond, &runs))
	for _, o := range i.await(8) {
		require.Equal(t, call.Success, o.Kind)
	}
	i.awaitEmpty()
	require.EqualValues(t, 8, runs.Load())
}

func TestNATSLostExecutorLeadsToALookup(t *testing.T) {
	t.Parallel()
	for effects, want := range map[call.Effects]string{call.EffectsNone: "handler", call.EffectsSideEffects: call.ReasonUnknownOutcome} {
		t.Run(string(effects), func(t *testing.T) {
			t.Parallel()
			i := install(t)
			var runs atomic.Int64
			add := sleeper(time.Millisecond, &runs, executor.WithEffects(effects))
			// An executor that takes the call and is never heard of again.
			conn, err := queue.Connect(t.Context(), i.cfg)
			require.NoError(t, err)
			defer conn.Close()
			ex, err := executor.New(executor.Config{Pool: "tools"})
			require.NoError(t, err)
			require.NoError(t, add(ex))
			b, err := conn.Register(t.Context(), queue.Registration{Pool: "tools", Functions: ex.Functions()})
			require.NoError(t, err)
			p, err := conn.Bind(t.Context(), b)
			require.NoError(t, err)
			i.dispatch(newCall("sleep", 1, `{}`))
			taken := 0
			require.NoError(t, p.Pull(t.Context(), 1, func(*queue.Taken) { taken++ }))
			require.Equal(t, 1, taken)

			i.run(executor.Config{}, add)
			require.Equal(t, want, i.await(1)[0].Result().Reason)
			i.awaitEmpty()
		})
	}
}

func TestNATSCancelNoticeReachesTheHandler(t *testing.T) {
	t.Parallel()
	i := install(t)
	causes, entered := make(chan error, 1), make(chan struct{})
	i.run(executor.Config{}, func(ex *executor.Executor) error {
		return executor.HandleRaw(ex, "waits", func(ctx context.Context, _ executor.Call) (executor.Output, error) {
			close(entered)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return executor.Output{}, ctx.Err()
		})
	})
	d := newCall("waits", 1, `{}`)
	i.dispatch(d)
	<-entered
	require.NoError(t, i.conn.Cancel(t.Context(), d.Key, "waits", "the turn was cancelled"))
	require.ErrorIs(t, <-causes, executor.ErrCancelled)
	i.awaitEmpty()
	require.Empty(t, i.await(0))
}

func TestNATSServerRestartLosesNothing(t *testing.T) {
	t.Parallel()
	i := install(t)
	var runs atomic.Int64
	i.run(executor.Config{}, sleeper(time.Second, &runs, executor.WithEffects(call.EffectsNone)))
	i.dispatch(newCall("sleep", 1, `{}`), newCall("sleep", 2, `{}`))
	require.Eventually(t, func() bool { return runs.Load() == 2 }, 20*time.Second, time.Millisecond)
	i.server.Stop()
	i.server.Start()
	i.await(2)
	i.dispatch(newCall("sleep", 3, `{}`))
	i.await(3)
	i.awaitEmpty()
}

func TestNATSReadyOnceRegistered(t *testing.T) {
	t.Parallel()
	i := install(t)
	var runs atomic.Int64
	r := i.run(executor.Config{}, sleeper(0, &runs))
	require.Eventually(t, func() bool { return r.Ready(t.Context()) == nil }, 20*time.Second, time.Millisecond)
	require.ErrorIs(t, r.Run(t.Context()), executor.ErrAlreadyRunning)
	require.ErrorIs(t, executor.HandleRaw(r.Executor, "late", func(context.Context, executor.Call) (executor.Output, error) { return executor.Output{}, nil }), executor.ErrAlreadyRunning)
	r.stop()
	require.NoError(t, <-r.done)
	require.ErrorContains(t, r.Ready(t.Context()), "not registered")
}

func TestNATSFunctionOfAnotherPoolIsRefused(t *testing.T) {
	t.Parallel()
	i := install(t)
	var runs atomic.Int64
	r := i.run(executor.Config{}, sleeper(0, &runs))
	require.Eventually(t, func() bool { return r.Ready(t.Context()) == nil }, 20*time.Second, time.Millisecond)
	ex, err := executor.New(executor.Config{Queue: i.cfg, Pool: "others", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, sleeper(0, &runs)(ex))
	var refused *queue.RegisterError
	require.ErrorAs(t, ex.Run(t.Context()), &refused)
	require.Equal(t, queue.CodeFunctionTaken, refused.Code)
}

func TestNATSLogsHoldNoArgumentsOrOutputs(t *testing.T) {
	t.Parallel()
	i := install(t)
	var logs bytes.Buffer
	var mu sync.Mutex
	log := slog.New(slog.NewTextHandler(lockedWriter{&mu, &logs}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := i.run(executor.Config{Logger: log}, func(ex *executor.Executor) error {
		return executor.Handle(ex, "f", func(_ context.Context, in struct{ S string }) (string, error) { return "secret-output", nil })
	})
	i.dispatch(newCall("f", 1, `{"S":"secret-argument"}`), newCall("f", 2, `{"S":5,"secret-member":1}`))
	i.await(2)
	r.stop()
	require.NoError(t, <-r.done)
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, logs.String(), "executor serves")
	require.NotContains(t, logs.String(), "secret")
}

type lockedWriter struct {
	mu  *sync.Mutex
	buf *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}
