package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/app"
	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/ops/opsclient"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

func TestMain(m *testing.M) {
	// What the developer's shell holds is no part of these tests.
	model, err := config.Model(config.Program{Name: "dispatcher", Stdout: io.Discard}, &config.Dispatcher{})
	if err != nil {
		panic(err)
	}
	for _, flag := range model.Flags {
		for _, name := range append(flag.Envs, flag.Tag.Get("secret")) {
			_ = os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m)
}

const patience = 30 * time.Second

// service is a simulator behind HTTP, and an official client for it.
type service struct {
	*simulator.Simulator
	url    string
	client openai.Client
}

func startService(t *testing.T, webhooks ...simulator.WebhookEndpoint) *service {
	t.Helper()
	sim, err := simulator.New(simulator.Config{Webhooks: webhooks})
	require.NoError(t, err)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(func() {
		sim.Close()
		server.Client().CloseIdleConnections()
		server.Close()
	})
	return &service{sim, server.URL + "/v1", openai.NewClient(
		option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("test-key"), option.WithHTTPClient(server.Client()))}
}

// create makes a session that calls function "greet" as the script says.
func (s *service) create(t *testing.T, script string, metadata map[string]string) string {
	t.Helper()
	ses, err := s.client.Beta.Agents.Sessions.New(t.Context(), openai.BetaAgentSessionNewParams{
		Agent: openai.BetaAgentSessionNewParamsAgent{
			Model: openai.String("gpt-6-astra"),
			Tools: []openai.AgentToolParamUnion{{OfParamFunction: &openai.AgentToolParamFunction{
				Name: "greet", Parameters: map[string]any{"type": "object", "properties": map[string]any{}},
			}}},
		},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input:       openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String(script)},
		Metadata:    metadata,
	})
	require.NoError(t, err)
	return ses.ID
}

func (s *service) awaitTurns(t *testing.T, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Stats().TurnsCompleted == n }, patience, 20*time.Millisecond)
}

// logger keeps the log for a test that fails.
func logger(t *testing.T) *slog.Logger {
	t.Helper()
	var log lockedBuffer
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", log.String())
		}
	})
	return slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// options are those of a dispatcher that is quick to react.
func options(t *testing.T, api *service, natsURL string) app.Options {
	t.Helper()
	o := app.Options{
		API: agents.Config{BaseURL: api.url}, Queue: queue.Config{URL: natsURL, Partitions: 4},
		Listen: "127.0.0.1:0", Logger: logger(t),
	}
	o.Dispatcher.LeaseTTL = 3 * time.Second
	o.Dispatcher.AttachPoll = 100 * time.Millisecond
	o.Dispatcher.StopTimeout = 5 * time.Second
	return o
}

// running is a dispatcher that runs until stop.
type running struct {
	*app.Dispatcher
	cancel context.CancelFunc
	result chan error
	once   sync.Once
	err    error
}

func run(t *testing.T, o app.Options) *running {
	t.Helper()
	d, err := app.New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Dispatcher: d, cancel: cancel, result: make(chan error, 1)}
	go func() { r.result <- d.Run(ctx) }()
	t.Cleanup(func() { _ = r.stop(t) })
	return r
}

func (r *running) stop(t *testing.T) error {
	t.Helper()
	r.once.Do(func() {
		r.cancel()
		select {
		case r.err = <-r.result:
		case <-time.After(patience):
			t.Fatal("the dispatcher did not stop")
		}
	})
	return r.err
}

// door is a client of the operators' server.
func (r *running) door(t *testing.T) *opsclient.Client {
	t.Helper()
	require.Eventually(t, func() bool { return r.Addr() != "" }, patience, 5*time.Millisecond)
	transport := &http.Transport{DisableKeepAlives: true}
	client, err := opsclient.New(opsclient.Config{URL: "http://" + r.Addr(), HTTPClient: &http.Client{Transport: transport, Timeout: 10 * time.Second}})
	require.NoError(t, err)
	return client
}

func (r *running) readiness(t *testing.T) ops.Readiness {
	t.Helper()
	ready, err := r.door(t).Readiness(t.Context())
	require.NoError(t, err)
	return ready
}

func (r *running) awaitReady(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return r.readiness(t).Ready }, patience, 20*time.Millisecond, "never ready")
}

func startExecutor(t *testing.T, natsURL string) { t.Helper(); startExecutorAt(t, natsURL, "") }

// startExecutorAt serves the function "greet" in the installation of a prefix.
func startExecutorAt(t *testing.T, natsURL, prefix string) {
	t.Helper()
	ex, err := executor.New(executor.Config{
		Pool: "greeters", Queue: queue.Config{URL: natsURL, Prefix: prefix}, StopTimeout: time.Second, Logger: logger(t),
	})
	require.NoError(t, err)
	require.NoError(t, executor.HandleRaw(ex, "greet", func(context.Context, executor.Call) (executor.Output, error) {
		return executor.Text("hello"), nil
	}))
	runExecutor(t, ex)
}

// runExecutor serves until the test ends.
func runExecutor(t *testing.T, ex *executor.Executor) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	res, err := client.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	if json.Valid(body) {
		require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	}
	return res.StatusCode, string(body)
}

// prefix makes a subject prefix of a test's name.
func prefix(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, name)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
