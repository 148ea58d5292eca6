// Package e2e runs the whole product on real parts: a nats-server process, a Redis
// process (or JetStream KV), the simulator over HTTP through the official SDK, the
// dispatcher and executors.
package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/schema"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/kvstore"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

const patience = 60 * time.Second

// stack is one installation with its own servers.
type stack struct {
	t     testing.TB
	sim   *simulator.Simulator
	http  *httptest.Server
	nats  *testservers.NATSServer
	redis *testservers.RedisServer
	store results.Store
	api   openai.Client
	log   *slog.Logger
	disp  *dispatcher.Dispatcher
	count *counter
	// stopOne stops the first dispatcher.
	stopOne func()
}

type options struct {
	sim        simulator.Config
	kv         bool
	dispatcher dispatcher.Config
	noStream   bool
	executor   executor.Config
	handlers   func(*executor.Executor)
	noServe    bool // start no executor
	natsOpts   []testservers.NATSOption
	queue      queue.Config
	// front stands before the API's handler.
	front func(http.Handler) http.Handler
}

// counter is an Observer that remembers what happened.
type counter struct {
	mu     sync.Mutex
	events map[string]int
	moves  []dispatcher.Transition
}

func (c *counter) Transition(t dispatcher.Transition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moves = append(c.moves, t)
}
func (c *counter) Request(string, string, time.Duration) {}
func (c *counter) Batch(int, int)                        {}
func (c *counter) Owned(int, int)                        {}
func (c *counter) Count(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events[event]++
}

func (c *counter) of(event string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[event]
}

func logger(t testing.TB) *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("E2E_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(&testWriter{t: t}, &slog.HandlerOptions{Level: level}))
}

// testWriter logs to the test until it has ended.
type testWriter struct {
	mu   sync.Mutex
	t    testing.TB
	done bool
}

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done && w.t.Context().Err() == nil {
		w.t.Log(string(p[:len(p)-1]))
	}
	return len(p), nil
}

// start brings an installation up and stops it at the end of the test.
func start(t testing.TB, o options) *stack {
	t.Helper()
	s := &stack{t: t, log: logger(t), count: &counter{events: map[string]int{}}}
	var err error
	s.sim, err = simulator.New(o.sim)
	require.NoError(t, err)
	t.Cleanup(s.sim.Close)
	handler := s.sim.Handler()
	if o.front != nil {
		handler = o.front(handler)
	}
	s.http = httptest.NewServer(handler)
	t.Cleanup(func() { s.http.CloseClientConnections(); s.http.Close() })
	s.api = openai.NewClient(option.WithBaseURL(s.http.URL+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
	s.nats = testservers.NATS(t, o.natsOpts...)
	if !o.kv {
		s.redis = testservers.Redis(t)
	}
	if o.dispatcher.Partitions == 0 {
		o.dispatcher.Partitions = 4
	}
	s.disp = s.dispatcher(o, "one")
	if !o.noServe {
		s.executor(o)
	}
	return s
}

// dispatcher runs a replica until the test ends.
func (s *stack) dispatcher(o options, name string) *dispatcher.Dispatcher {
	t := s.t
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn := s.connect(ctx, o, "dispatcher-"+name)
	require.NoError(t, conn.Provision(ctx))
	secret, err := conn.Secret(ctx)
	require.NoError(t, err)
	arguments := &schema.Validator{Logger: s.log}
	registry, err := conn.ServeRegistry(ctx, queue.WithAcceptance(arguments.Accept))
	require.NoError(t, err)
	if o.kv {
		s.store, err = kvstore.New(ctx, conn.JetStream(), kvstore.Config{Partitions: o.dispatcher.Partitions})
	} else {
		s.store, err = redisstore.New(ctx, redisstore.Config{URL: s.redis.URL(), Partitions: o.dispatcher.Partitions})
	}
	require.NoError(t, err)
	client, err := agents.New(agents.Config{BaseURL: s.http.URL + "/v1", APIKey: "test"})
	require.NoError(t, err)
	cfg := o.dispatcher
	cfg.Name, cfg.Secret, cfg.Logger, cfg.Observer = name, secret, s.log.With("at", name), s.count
	parts := dispatcher.Parts{API: client, Queue: conn, Store: s.store, Functions: registry, Arguments: arguments}
	if !o.noStream {
		parts.Source = sources.NewStream(client, sources.StreamConfig{Logger: s.log})
	}
	d, err := dispatcher.New(cfg, parts)
	require.NoError(t, err)
	require.NoError(t, conn.ServeOutcomes(ctx, d.Standing))
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	store := s.store
	stop := sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the dispatcher did not stop")
		}
		conn.Close()
		_ = store.Close()
		client.Close()
	})
	t.Cleanup(stop)
	if s.stopOne == nil {
		s.stopOne = stop
	}
	return d
}

func (s *stack) connect(ctx context.Context, o options, name string) *queue.Conn {
	cfg := o.queue
	cfg.URL, cfg.Name, cfg.Logger = s.nats.URL(), name, s.log.With("at", name)
	cfg.Partitions = o.dispatcher.Partitions
	conn, err := queue.Connect(ctx, cfg)
	require.NoError(s.t, err)
	return conn
}

// executor runs an executor until the test ends, or stop is called.
func (s *stack) executor(o options) (stop func()) {
	t := s.t
	t.Helper()
	cfg := o.executor
	if cfg.Pool == "" {
		cfg.Pool = "test"
	}
	cfg.Queue.URL, cfg.Logger = s.nats.URL(), s.log.With("at", "executor")
	ex, err := executor.New(cfg)
	require.NoError(t, err)
	o.handlers(ex)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Error("the executor did not stop")
		}
	})
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return ex.Ready(ctx) == nil }, patience, 5*time.Millisecond, "the executor is not ready")
	return stop
}

// session creates a session through the official SDK and has it watched.
func (s *stack) session(input string, functions ...string) string {
	s.t.Helper()
	tools := make([]string, len(functions))
	for i, f := range functions {
		tools[i] = `{"type":"function","name":` + quote(f) + `,"description":"d","parameters":{"type":"object"}}`
	}
	list := ""
	for i, tool := range tools {
		if i > 0 {
			list += ","
		}
		list += tool
	}
	body := fmt.Sprintf(`{"agent":{"model":"gpt-6-astra","tools":[%s]},"environment":{"type":"none"},"input":%s}`, list, quote(input))
	session, err := s.api.Beta.Agents.Sessions.New(s.t.Context(), openai.BetaAgentSessionNewParams{},
		option.WithRequestBody("application/json", []byte(body)))
	require.NoError(s.t, err)
	require.NoError(s.t, s.disp.Attach(s.t.Context(), session.ID))
	return session.ID
}

// idle waits until the session's turn has ended.
func (s *stack) idle(id string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		session, err := s.api.Beta.Agents.Sessions.Get(s.t.Context(), id)
		return err == nil && session.Status == "idle" && len(session.RequiredActions) == 0
	}, patience, 10*time.Millisecond, "session %s did not become idle", id)
}

// answers are the accepted results of a session by call id.
func (s *stack) answers(id string) map[string]simulator.Result {
	s.t.Helper()
	list, err := s.sim.Results(id)
	require.NoError(s.t, err)
	out := map[string]simulator.Result{}
	for _, r := range list {
		out[r.CallID] = r
	}
	return out
}

// settled waits until the store has ended every call of the sessions.
func (s *stack) settled(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		require.Eventually(s.t, func() bool {
			recs, err := s.store.Session(s.t.Context(), id)
			if err != nil {
				return false
			}
			for _, r := range recs {
				if !r.State.Final() {
					return false
				}
			}
			return true
		}, patience, 10*time.Millisecond, "session %s has calls that did not end", id)
	}
}

// clean checks that no message is left anywhere and no call was answered twice.
func (s *stack) clean() {
	s.t.Helper()
	conn := s.connect(s.t.Context(), options{dispatcher: dispatcher.Config{Partitions: 4}}, "check")
	defer conn.Close()
	for _, name := range []string{"FN_CALLS", "FN_RESULTS"} {
		require.Eventually(s.t, func() bool {
			stream, err := conn.JetStream().Stream(s.t.Context(), name)
			return err == nil && stream.CachedInfo().State.Msgs == 0
		}, patience, 20*time.Millisecond, "messages are left in %s", name)
	}
	require.Zero(s.t, s.sim.Stats().Pending)
}

// awaitState waits until the session's only call is in a state.
func (s *stack) awaitState(id string, state call.State) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		recs, err := s.store.Session(s.t.Context(), id)
		return err == nil && len(recs) == 1 && recs[0].State == state
	}, patience, 5*time.Millisecond, "the call did not become %s", state)
}

// left is how many messages a stream holds.
func (s *stack) left(stream string) uint64 {
	s.t.Helper()
	conn := s.connect(s.t.Context(), options{dispatcher: dispatcher.Config{Partitions: 4}}, "check")
	defer conn.Close()
	info, err := conn.JetStream().Stream(s.t.Context(), stream)
	require.NoError(s.t, err)
	return info.CachedInfo().State.Msgs
}
