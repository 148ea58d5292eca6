package agents_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/pkg/call"
)

const secret = "sk-test-Zm9vYmFy0123456789"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a server that answers with handler and remembers what it was asked.
type api struct {
	*agents.Client

	mu       sync.Mutex
	requests []request
}

type request struct {
	method, uri string
	header      http.Header
	body        []byte
}

func serve(t *testing.T, handler http.HandlerFunc, changes ...func(*agents.Config)) *api {
	t.Helper()
	a := &api{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.requests = append(a.requests, request{method: r.Method, uri: r.RequestURI, header: r.Header.Clone(), body: body})
		a.mu.Unlock()
		handler(w, r)
	}))
	cfg := agents.Config{APIKey: secret, BaseURL: srv.URL + "/v1"}
	for _, change := range changes {
		change(&cfg)
	}
	client, err := agents.New(cfg)
	require.NoError(t, err)
	a.Client = client
	t.Cleanup(func() {
		client.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return a
}

func (a *api) asked() []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests
}

// reply answers everything with one status, content type and body.
func reply(status int, contentType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Request-Id", "req_1")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func replyJSON(status int, body string, headers ...string) http.HandlerFunc {
	return reply(status, "application/json", body, headers...)
}

// envelope is the API's error body.
func envelope(code, message string) string {
	return `{"error":{"type":"` + code + `","code":"` + code + `","message":"` + message + `","param":null}}`
}

func refused(t *testing.T, err error) *call.Refusal {
	t.Helper()
	var r *call.Refusal
	require.ErrorAs(t, err, &r)
	require.NotContains(t, err.Error(), secret)
	return r
}

func TestNewRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg  agents.Config
		want string
	}{
		"no key":           {agents.Config{}, "OPENAI_API_KEY"},
		"blank key":        {agents.Config{APIKey: " \n"}, "OPENAI_API_KEY"},
		"line break":       {agents.Config{APIKey: "sk-a\nsk-b"}, "line break"},
		"no scheme":        {agents.Config{APIKey: secret, BaseURL: "localhost:8080"}, "http or https"},
		"not a URL":        {agents.Config{APIKey: secret, BaseURL: "http://\x7f"}, "cannot be read"},
		"negative timeout": {agents.Config{APIKey: secret, Timeout: -1}, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := agents.New(test.cfg)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "sk-")
		})
	}
	_, err := agents.New(agents.Config{})
	require.ErrorIs(t, err, agents.ErrNoKey)
}

func TestRequestsCarryTheConfiguration(t *testing.T) {
	t.Parallel()
	a := serve(t, replyJSON(200, `{"id":"sess/1","status":"idle","required_actions":[]}`), func(c *agents.Config) {
		c.APIKey, c.Organization, c.Project = secret+"\n", "org_1", "proj_1"
	})
	_, err := a.Session(t.Context(), "sess/1")
	require.NoError(t, err)

	got := a.asked()[0]
	require.Equal(t, "/v1/agents/sessions/sess%2F1", got.uri)
	require.Equal(t, "Bearer "+secret, got.header.Get("Authorization"))
	require.Equal(t, "agents=v1", got.header.Get("OpenAI-Beta"))
	require.Equal(t, "org_1", got.header.Get("OpenAI-Organization"))
	require.Equal(t, "proj_1", got.header.Get("OpenAI-Project"))
}

func TestAServerGivenByURLNeedsNoKey(t *testing.T) {
	t.Parallel()
	a := serve(t, replyJSON(200, `{"id":"s","status":"idle","required_actions":[]}`), func(c *agents.Config) { c.APIKey = "" })
	_, err := a.Session(t.Context(), "s")
	require.NoError(t, err)
	require.NotEqual(t, "Bearer ", a.asked()[0].header.Get("Authorization"))
}

func TestSecretsAreNotLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	a := serve(t, replyJSON(401, envelope("unauthorized", "Incorrect API key provided: "+secret)), func(c *agents.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	_, err := a.Session(t.Context(), "sess_1")
	require.Equal(t, call.RefusedAuth, refused(t, err).Class)
	require.Contains(t, log.String(), "request_id=req_1")
	require.NotContains(t, log.String(), secret)
}

func TestATimeoutIsBusyAndNotTheCallersDeadline(t *testing.T) {
	t.Parallel()
	a := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		func(c *agents.Config) { c.Timeout = 20 * time.Millisecond })
	_, err := a.Session(t.Context(), "sess_1")
	require.Equal(t, call.RefusedBusy, refused(t, err).Class)
	require.NotErrorIs(t, err, errors.New("context deadline exceeded"))
	require.ErrorContains(t, err, "no answer in time")
	require.Equal(t, call.RefusedBusy, refused(t, a.Stream(t.Context(), "sess_1", func() {}, nil)).Class)
}
