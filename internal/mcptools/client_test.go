package mcptools

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

const patience = 20 * time.Second

// logs collects what is logged.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logs) await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(l.String(), text) }, patience, 5*time.Millisecond, "%s\n%s", text, l)
}

// played is the command of a server that this test binary plays.
func played(t *testing.T, args ...string) *Command {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return &Command{Path: self, Args: args, Dir: t.TempDir(), Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0")}
}

// bench is an executor that serves the tools of one server.
type bench struct {
	t      *testing.T
	client *Client
	ex     *executor.Executor
	log    *logs
	names  []string
}

func serve(t *testing.T, s Server) *bench {
	t.Helper()
	b, err := try(t, s)
	require.NoError(t, err, b.log)
	return b
}

func try(t *testing.T, s Server) (*bench, error) {
	t.Helper()
	b := &bench{t: t, log: new(logs)}
	if s.Name == "" {
		s.Name = "tools"
	}
	b.client = New(s, "v1", slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(b.client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	functions, err := b.client.Functions(ctx)
	if err != nil {
		return b, err
	}
	b.ex, err = executor.New(executor.Config{Pool: "p"})
	require.NoError(t, err)
	for _, f := range functions {
		require.NoError(t, executor.HandleRaw(b.ex, f.Name, f.Handler, f.Options...))
		b.names = append(b.names, f.Name)
	}
	return b, nil
}

func dispatch(function, arguments string) call.Dispatch {
	return call.Dispatch{
		Call: call.Call{
			Key: call.Key{Session: "s", Turn: "t", Call: "c"}, Function: function, Arguments: json.RawMessage(arguments),
		},
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Attempt: 2, Nonce: "2-x", Timeout: patience, Deadline: time.Now().Add(time.Minute),
	}
}

// invoke runs a call and gives its outcome without what names the call.
func (b *bench) invoke(function, arguments string) call.Outcome {
	b.t.Helper()
	return b.run(b.t.Context(), dispatch(function, arguments))
}

func (b *bench) run(ctx context.Context, d call.Dispatch) call.Outcome {
	o := b.ex.Invoke(ctx, d)
	o.Key, o.Nonce = call.Key{}, ""
	return o
}

func (b *bench) text(function, arguments string) string {
	b.t.Helper()
	o := b.invoke(function, arguments)
	require.Equal(b.t, call.Success, o.Kind, "%s %s", o.Reason+o.Error, b.log)
	var text string
	require.NoError(b.t, json.Unmarshal(o.Output, &text))
	return text
}

func (b *bench) function(name string) call.Function {
	b.t.Helper()
	for _, f := range b.ex.Functions() {
		if f.Name == name {
			return f
		}
	}
	require.Fail(b.t, "not served", name)
	return call.Function{}
}

// servers are the ways in which one and the same server is reached.
func servers(t *testing.T) map[string]Server {
	t.Helper()
	at := func(options *mcp.StreamableHTTPOptions) Server {
		ts := httptest.NewServer(streamable(options))
		t.Cleanup(ts.Close)
		return Server{Endpoint: &Endpoint{URL: ts.URL}}
	}
	return map[string]Server{
		"stdio":             {Command: played(t, "serve")},
		"stdio, noisy":      {Command: played(t, "noisy")},
		"http, events":      at(&mcp.StreamableHTTPOptions{}),
		"http, json":        at(&mcp.StreamableHTTPOptions{JSONResponse: true}),
		"http, sessionless": at(&mcp.StreamableHTTPOptions{Stateless: true}),
	}
}

func TestToolsAreFunctions(t *testing.T) {
	t.Parallel()
	for name, s := range servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := serve(t, s)
			require.ElementsMatch(t, []string{
				"again", "ask", "busy", "die", "echo", "fail", "grow", "meta", "nothing", "parts", "refuse", "structured", "wait",
			}, b.names, "all pages are read, and a schema that cannot be used is left out")
			b.log.await(t, "a tool is left out: its schema cannot be used")
			require.Equal(t, call.Function{Name: "echo", Description: "The tool echo.", Parameters: raw(bigSchema)}, b.function("echo"))

			// Numbers, duplicates and escapes survive; white space does not.
			require.Equal(t, `{"n":1,"n":123456789012345678901234567890,"t":"<a>\u003c\ud800 &"}`,
				b.text("echo", "{ \"n\": 1,\n \"n\": 123456789012345678901234567890, \"t\": \"<a>\\u003c\\ud800 &\" }"))
			if name != "http, sessionless" { // this server cannot read its header's copy of the name then
				require.Equal(t, `{"n":1e400}`, b.text("echo", `{"n":1e400}`))
			}
			require.Equal(t, `{}`, b.text("echo", ``))
			require.JSONEq(t, `{"key":"`+dispatch("meta", "").IdempotencyKey()+`","attempt":2,"uncertain":null,"traceparent":"`+dispatch("", "").Traceparent+`"}`,
				b.text("meta", `{}`))
			require.Equal(t, `{"z":18446744073709551615,"a":"b"}`, b.text("structured", `{}`))

			require.Equal(t, call.Outcome{
				Kind:   call.Success,
				Output: raw(`[{"type":"input_text","text":"a chart"},{"type":"input_image","image_url":"data:image/png;base64,AQID"}]`),
			}, b.invoke("parts", `{}`))
			require.Equal(t, call.Outcome{Kind: call.Success, Output: raw(`null`)}, b.invoke("nothing", `{}`))
			require.Equal(t, call.Outcome{Kind: call.Failure, Error: "no such customer\ntry another"}, b.invoke("fail", `{}`))
			require.Equal(t, call.Outcome{Kind: call.Failure, Cause: causeRefused, Error: "the id is not one"}, b.invoke("refuse", `{}`))
			require.Equal(t, call.Outcome{Kind: call.Retry, Reason: "come back later"}, b.invoke("busy", `{}`))
			require.NotEqual(t, call.Success, b.invoke("ask", `{}`).Kind, "there is nobody to ask")
			require.Equal(t, call.ReasonInvalidArguments, b.invoke("echo", `{`).Cause)
		})
	}
}

func TestAnnotationsAreNotTrustedByThemselves(t *testing.T) {
	t.Parallel()
	cautious := serve(t, Server{Command: played(t, "serve")})
	trusting := serve(t, Server{Command: played(t, "serve"), TrustAnnotations: true, Overrides: map[string]Override{
		"again": {Options: []executor.Option{executor.WithEffects(call.EffectsSideEffects)}},
	}})
	for name, want := range map[string][2]call.Effects{
		"echo":  {call.EffectsSideEffects, call.EffectsNone},
		"again": {call.EffectsSideEffects, call.EffectsSideEffects},
		"fail":  {call.EffectsSideEffects, call.EffectsSideEffects},
	} {
		require.Equal(t, want[0], cautious.function(name).WithDefaults().Effects, name)
		require.Equal(t, want[1], trusting.function(name).WithDefaults().Effects, name)
	}
	require.Equal(t, call.EffectsIdempotent, serve(t, Server{Command: played(t, "serve"), TrustAnnotations: true}).function("again").WithDefaults().Effects)
}

func TestConfigurationChoosesAndNames(t *testing.T) {
	t.Parallel()
	b := serve(t, Server{
		Command: played(t, "serve"), Tools: []string{"echo", "again"}, Prefix: "x_", Options: []executor.Option{executor.WithTimeout(7 * time.Second)},
		Overrides: map[string]Override{"again": {Name: "once_more", Options: []executor.Option{executor.WithTimeout(time.Second)}}},
	})
	require.ElementsMatch(t, []string{"x_echo", "once_more"}, b.names)
	require.Equal(t, call.Duration(7*time.Second), b.function("x_echo").Policy.Timeout)
	require.Equal(t, call.Duration(time.Second), b.function("once_more").Policy.Timeout)
	require.Equal(t, "again", b.text("once_more", `{}`))

	for want, s := range map[string]Server{
		`MCP server "tools" has no tool "ecco"; it has: again, ask, busy`:                  {Tools: []string{"ecco"}},
		`MCP server "tools" serves no tool "again", which has an override; it has: `:       {Tools: []string{"echo"}, Overrides: map[string]Override{"again": {}}},
		`MCP server "tools": tool "number" cannot be served: the JSON Schema of the param`: {Tools: []string{"number"}},
	} {
		s.Command = played(t, "serve")
		_, err := try(t, s)
		require.ErrorIs(t, err, ErrTools)
		require.ErrorContains(t, err, want)
	}
}

func TestCancelledCallIsCancelledAtTheServer(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes")
	seen := func(text string) func() bool {
		return func() bool { got, _ := os.ReadFile(notes); return strings.Contains(string(got), text) }
	}
	b := serve(t, Server{Command: played(t, "serve", notes)})
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan call.Outcome, 1)
	go func() { ended <- b.run(ctx, dispatch("wait", `{}`)) }()
	require.Eventually(t, seen("started"), patience, 5*time.Millisecond)
	b.log.await(t, `msg="a tool tells its progress"`)
	cancel(executor.ErrCancelled)
	require.Empty(t, (<-ended).Kind)
	require.Eventually(t, seen("cancelled"), patience, 5*time.Millisecond)

	d := dispatch("wait", `{}`)
	d.Timeout = 100 * time.Millisecond
	require.Equal(t, call.Outcome{Kind: call.Failure, Cause: call.ReasonTimeout, Error: "timed out after 100ms"}, b.run(t.Context(), d))
	require.Equal(t, "again", b.text("again", `{}`), "the server goes on")
}

func TestServerThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	b := serve(t, Server{Command: played(t, "serve"), Overrides: map[string]Override{
		"echo": {Options: []executor.Option{executor.WithEffects(call.EffectsNone)}},
	}})
	unknown := call.Outcome{Kind: call.Failure, Cause: call.ReasonUnknownOutcome, Error: call.UnknownOutcomeText}
	require.Equal(t, unknown, b.invoke("die", `{}`), "nobody knows what it did")
	require.Equal(t, `{}`, b.text("echo", `{}`), "it is awaited")
	b.log.await(t, "the server ended: exit status 4")

	d := dispatch("die", `{}`)
	d.OnUncertain = call.UncertainRerun
	require.Equal(t, call.Outcome{Kind: call.Retry, Reason: `MCP server "tools" ended before it answered`}, b.run(t.Context(), d))
}

func TestServerThatDoesNotStartIsExplained(t *testing.T) {
	t.Parallel()
	log := new(logs)
	c := New(Server{Name: "sad", Command: played(t, "broken")}, "", slog.New(slog.NewTextHandler(log, nil)))
	defer c.Close()
	log.await(t, "the server ended: exit status 9: the license has expired")
	require.Error(t, c.Ready())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := c.Functions(ctx)
	require.ErrorContains(t, err, `MCP server "sad": `)
}

func TestToolsThatChangeAreTold(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stdio", "http, events"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := serve(t, servers(t)[name])
			require.Equal(t, "grown", b.text("grow", `{}`))
			b.log.await(t, `msg="the tools of an MCP server changed; restart the executor to serve them as they are now" mcp_server=tools added=[new] removed=[again] changed=[]`)
			o := b.invoke("again", `{}`)
			require.Equal(t, causeRefused, o.Cause)
			require.Contains(t, o.Error, "again")
		})
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes")
	b := serve(t, Server{Command: played(t, "serve", notes), Concurrency: 3, Overrides: map[string]Override{"wait": {Concurrency: 2}}})
	ctx, cancel := context.WithCancelCause(t.Context())
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() { b.run(ctx, dispatch("wait", `{}`)) })
	}
	started := func() int { got, _ := os.ReadFile(notes); return strings.Count(string(got), "started") }
	require.Eventually(t, func() bool { return started() == 2 }, patience, 5*time.Millisecond)
	require.Equal(t, "again", b.text("again", `{}`), "the third slot is for others")
	require.Equal(t, 2, started())
	cancel(executor.ErrCancelled)
	calls.Wait()
}

func TestEndpointGetsItsHeaders(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("first\n"), 0o600))
	var mu sync.Mutex
	seen := map[string]bool{}
	handler := streamable(nil)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Header.Get("Authorization")+" "+r.Header.Get("X-Team")] = true
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	defer ts.Close()
	b := serve(t, Server{Endpoint: &Endpoint{URL: ts.URL, Header: http.Header{"X-Team": {"blue"}}, BearerFile: token}})
	require.NoError(t, os.WriteFile(token, []byte("second"), 0o600))
	require.Equal(t, "again", b.text("again", `{}`))
	b.client.Close()
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]bool{"Bearer first blue": true, "Bearer second blue": true}, seen)
}
