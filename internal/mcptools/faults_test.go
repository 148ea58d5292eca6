package mcptools

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// faulty is an MCP server whose calls of tools meet a fault once it is set.
type faulty struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	fault   atomic.Pointer[http.HandlerFunc]
}

func newFaulty(t *testing.T, options *mcp.StreamableHTTPOptions) *faulty {
	t.Helper()
	f := new(faulty)
	f.restart(options)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if fault := f.fault.Load(); fault != nil && bytes.Contains(body, []byte(`"tools/call"`)) {
			(*fault)(w, r)
			return
		}
		(*f.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// restart replaces the server by one that knows no session.
func (f *faulty) restart(options *mcp.StreamableHTTPOptions) {
	h := streamable(options)
	f.handler.Store(&h)
}

func (f *faulty) meet(fault http.HandlerFunc) { f.fault.Store(&fault) }

func TestFaultsOfAnEndpoint(t *testing.T) {
	t.Parallel()
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			http.Error(w, "a secret page", code)
		}
	}
	cut := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	unknown := call.Outcome{Kind: call.Failure, Cause: call.ReasonUnknownOutcome, Error: call.UnknownOutcomeText}
	retry := func(text string, after time.Duration) call.Outcome {
		return call.Outcome{Kind: call.Retry, Reason: `MCP server "tools" ` + text, After: after}
	}
	for name, tt := range map[string]struct {
		fault http.HandlerFunc
		want  call.Outcome
	}{
		"busy":           {status(http.StatusServiceUnavailable, "Retry-After", "7"), retry("answered HTTP 503", 7*time.Second)},
		"too many":       {status(http.StatusTooManyRequests, "Retry-After", "3"), retry("answered HTTP 429", 3*time.Second)},
		"not authorized": {status(http.StatusUnauthorized), retry("answered HTTP 401", 0)},
		"redirected":     {status(http.StatusTemporaryRedirect, "Location", "http://elsewhere.invalid/"), retry("answered HTTP 307", 0)},
		"crashed":        {status(http.StatusInternalServerError), unknown},
		"gateway":        {status(http.StatusGatewayTimeout), unknown},
		"no answer":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, unknown},
		"half a message": {cut("application/json", `{"jsonrpc":"2.0",`), unknown},
		"half a stream":  {cut("text/event-stream", "event: message\n"), unknown},
		"not a message":  {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") }, unknown},
		"a web page":     {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }, unknown},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(make([]byte, maxMessage+1))
		}, unknown},
	} {
		for mode, options := range map[string]*mcp.StreamableHTTPOptions{"session": {}, "sessionless": {Stateless: true}} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				f := newFaulty(t, options)
				b := serve(t, Server{Endpoint: &Endpoint{URL: f.URL}})
				f.meet(tt.fault)
				require.Equal(t, tt.want, b.invoke("again", `{}`))
				f.fault.Store(nil)
				require.Equal(t, "again", b.text("again", `{}`), "afterwards all is well")
			})
		}
	}
}

func TestEndpointThatForgotTheSessionGetsTheCallAgain(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, nil)
	b := serve(t, Server{Endpoint: &Endpoint{URL: f.URL}})
	f.restart(nil)
	require.Equal(t, "again", b.text("again", `{}`))
	b.log.await(t, `msg="MCP server is not connected; trying on"`)
}

func TestEndpointThatIsGone(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, &mcp.StreamableHTTPOptions{Stateless: true})
	b := serve(t, Server{Endpoint: &Endpoint{URL: f.URL}})
	require.NoError(t, f.Listener.Close())
	f.CloseClientConnections()
	// A call that meets the end of a connection may have been seen.
	require.Eventually(t, func() bool { return b.invoke("again", `{}`).Kind == call.Retry }, patience, 5*time.Millisecond)
	require.Equal(t, call.Outcome{Kind: call.Retry, Reason: `MCP server "tools" could not be reached`}, b.invoke("again", `{}`))
}

func TestEndpointThatIsNotThereYetIsAwaited(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	handler := streamable(nil)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "starting", http.StatusBadGateway)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer ts.Close()
	time.AfterFunc(300*time.Millisecond, func() { up.Store(true) })
	b := serve(t, Server{Endpoint: &Endpoint{URL: ts.URL}})
	require.NoError(t, b.client.Ready())
	require.Equal(t, "again", b.text("again", `{}`))
	b.client.Close()
}
