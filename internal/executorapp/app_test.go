package executorapp

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

const functions = `pool: tools
functions:
  cat:
    effects: none
    exec: {command: [cat]}
  fail:
    exec: {command: [sh, -c, "echo customer 456 not found >&2; exit 1"]}
  charge:
    exec: {command: [sh, -c, "echo charged twice"]}
    verify: {exec: {command: [sh, -c, "echo receipt $IDEMPOTENCY_KEY"]}}
`

// settings parses the command line as the program does.
func settings(t *testing.T, text string, flags ...string) Settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "functions.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	var s Settings
	_, err := config.Parse(config.Program{Name: "executor", Stdout: io.Discard}, &s, append(flags, path))
	require.NoError(t, err)
	return s
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestAppServesItsFile(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	log := slog.New(slog.DiscardHandler)
	app, err := New(settings(t, functions, "--nats", server.URL(), "--metrics-listen", "127.0.0.1:0", "--stop-timeout", "5s"), "v1", log)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	defer stop()
	base := "http://" + app.Addr()
	status, body := get(t, base+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "no dispatcher has answered yet")
	status, _ = get(t, base+"/healthz")
	require.Equal(t, http.StatusOK, status)

	// The dispatcher's side comes up later.
	serving, end := context.WithCancel(context.Background())
	conn, err := queue.Connect(serving, queue.Config{URL: server.URL(), Partitions: 1, Logger: log})
	require.NoError(t, err)
	defer conn.Close()
	defer end()
	require.NoError(t, conn.Provision(serving))
	registry, err := conn.ServeRegistry(serving)
	require.NoError(t, err)
	require.Eventually(t, func() bool { status, _ := get(t, base+"/readyz"); return status == http.StatusOK }, 10*time.Second, 20*time.Millisecond)
	_, there := registry.Function("cat")
	require.True(t, there)
	charge, _ := registry.Function("charge")
	require.Equal(t, call.UncertainVerify, charge.WithDefaults().OnUncertain)
	require.NoError(t, conn.ServeOutcomes(serving, func(context.Context, call.Question) (call.Standing, error) { return call.StandingPending, nil }))

	var calls []call.Dispatch
	for i, name := range []string{"cat", "fail", "charge"} {
		calls = append(calls, call.Dispatch{
			Call:    call.Call{Key: call.Key{Session: "s", Turn: "t", Call: name}, Function: name, Arguments: []byte(`{"n":1e400}`)},
			Attempt: 1, Handover: 1, Nonce: "1-x" + string(rune('a'+i)), Timeout: 10 * time.Second, Deadline: time.Now().Add(time.Minute), Uncertain: name == "charge",
		})
	}
	for _, err := range conn.Publish(serving, calls) {
		require.NoError(t, err)
	}
	outcomes := make(chan call.Outcome, len(calls))
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		_ = conn.Consume(serving, 0, func(batch []call.Delivered) {
			for _, d := range batch {
				outcomes <- d.Outcome
				d.Ack()
			}
		})
	}()
	got := map[string]call.Outcome{}
	for range calls {
		select {
		case o := <-outcomes:
			got[o.Key.Call] = o
		case <-time.After(20 * time.Second):
			require.Fail(t, "an outcome is missing")
		}
	}
	require.Equal(t, `"{\"n\":1e400}"`, string(got["cat"].Output))
	require.Equal(t, "customer 456 not found", got["fail"].Error)
	require.Equal(t, `"receipt `+calls[2].IdempotencyKey()+`\n"`, string(got["charge"].Output))
	require.Eventually(t, func() bool {
		_, body = get(t, base+"/metrics")
		return regexpMatch(`callfan_executor_calls_total\{function="cat",outcome="success",reason="handler"\} 1`, body) &&
			regexpMatch(`callfan_executor_calls_total\{function="fail",outcome="failure",reason="handler"\} 1`, body) &&
			regexpMatch(`callfan_executor_calls_total\{function="charge",outcome="success",reason="verified"\} 1`, body) &&
			regexpMatch(`callfan_executor_calls_running\{function="cat"\} 0`, body)
	}, 20*time.Second, 20*time.Millisecond, body)

	stop()
	require.NoError(t, <-done)
	end()
	<-consumed
}

// What `--register` leaves is what a pool needs that is scaled from zero: its durable takes a call before any executor runs.
func TestRegisterMakesTheDurableOfAPoolWithoutExecutors(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	log := slog.New(slog.DiscardHandler)
	app, err := New(settings(t, functions, "--nats", server.URL(), "--register"), "v1", log)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	registered := make(chan error, 1)
	go func() { registered <- app.Register(ctx) }() // waits for a dispatcher
	conn, err := queue.Connect(ctx, queue.Config{URL: server.URL(), Partitions: 1, Logger: log})
	require.NoError(t, err)
	defer conn.Close()
	defer stop()
	require.NoError(t, conn.Provision(ctx))
	registry, err := conn.ServeRegistry(ctx)
	require.NoError(t, err)
	select {
	case err := <-registered:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "not registered")
	}
	for _, name := range []string{"cat", "fail", "charge"} {
		_, there := registry.Function(name)
		require.True(t, there, name)
	}
	d := call.Dispatch{
		Call:    call.Call{Key: call.Key{Session: "s", Turn: "t", Call: "c"}, Function: "cat", Arguments: []byte(`{}`)},
		Attempt: 1, Handover: 1, Nonce: "1-x", Timeout: 10 * time.Second, Deadline: time.Now().Add(time.Minute),
	}
	require.NoError(t, conn.Publish(ctx, []call.Dispatch{d})[0])
	nc, err := nats.Connect(server.URL())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	consumer, err := js.Consumer(ctx, "FN_CALLS", "pool_tools") // what KEDA is told to ask for
	require.NoError(t, err)
	require.EqualValues(t, 1, consumer.CachedInfo().NumPending)
}

func TestWrongInputIsFoundBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	_, err := New(settings(t, "pool: tools\nfunctions:\n  f: {exec: {command: [no-such-program]}}\n"), "", log)
	require.ErrorContains(t, err, `functions.yaml:3:24: function "f": exec: command: the program "no-such-program" is not in PATH`)
	_, err = New(settings(t, functions, "--metrics-listen", "127.0.0.1:x"), "", log)
	require.ErrorContains(t, err, "--metrics-listen")
	_, err = New(settings(t, functions, "--check", "--metrics-listen", "127.0.0.1:x"), "", log)
	require.NoError(t, err, "a check opens no port")
}

func regexpMatch(pattern, text string) bool {
	return regexp.MustCompile("(?m)^" + pattern + "$").MatchString(text)
}
