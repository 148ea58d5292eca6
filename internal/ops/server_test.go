package ops_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/ops/opsclient"
	"github.com/callfan/callfan/pkg/call"
)

const (
	token = "a-token-of-16-and-more"
	asked = "Content-Type"
	json  = "application/json"
)

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	missing := make(chan error, 8)
	b := setup(t, ops.Config{Checks: []ops.Check{
		{Name: "nats", Run: func(context.Context) error { return nil }},
		{Name: "store", Run: func(context.Context) error { return <-missing }},
	}})
	status, body := b.do(t, http.MethodGet, "/healthz", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"alive":true}`, body)

	missing <- errMissing
	status, body = b.do(t, http.MethodGet, "/readyz", "")
	require.Equal(t, 503, status)
	require.JSONEq(t, `{"ready":false,"checks":{"nats":"ok","store":"it is missing"}}`, body)

	missing <- nil
	status, body = b.do(t, http.MethodGet, "/readyz", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"ready":true,"checks":{"nats":"ok","store":"ok"}}`, body)

	b.Stopping()
	missing <- nil
	status, body = b.do(t, http.MethodGet, "/readyz", "")
	require.Equal(t, 503, status)
	require.Contains(t, body, `"process":"the dispatcher is stopping"`)
	status, _ = b.do(t, http.MethodGet, "/healthz", "")
	require.Equal(t, 200, status)
}

func TestReadinessIsBounded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	b := setup(t, ops.Config{CheckTimeout: 50 * time.Millisecond, Checks: []ops.Check{
		{Name: "stuck", Run: func(context.Context) error { <-release; return nil }},
	}})
	status, body := b.do(t, http.MethodGet, "/readyz", "")
	require.Equal(t, 503, status)
	require.Contains(t, body, "no answer in time")
}

func TestAdminAPI(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	b.admin.sessions = []ops.Session{{ID: "sess_1", Partition: 3, Watched: true, Served: true, Status: "idle", Retrieved: &at}}
	b.admin.functions = []ops.Function{{
		Function: call.Function{Name: "get_weather", Parameters: []byte(`{ "description": "<b>" }`), Verifies: true}, Pool: "weather", Changed: at,
		Executors: []ops.Executor{{ID: "one", Seen: at, Current: true}, {ID: "two", Seen: at.Add(time.Second)}},
	}, {Function: call.Function{Name: "f"}}}
	require.Equal(t, at.Add(time.Second), b.admin.functions[0].Seen())

	status, body := b.do(t, http.MethodGet, "/v1/sessions", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"sessions":[{"id":"sess_1","partition":3,"watched":true,"served":true,"status":"idle",
		"open_calls":0,"parked_calls":0,"saved_results":0,"retrieved_at":"2026-11-29T12:00:00Z"}]}`, body)

	status, body = b.do(t, http.MethodPost, "/v1/sessions", `{"ids":["sess_1","sess_2"]}`, asked, json)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"ids":["sess_1","sess_2"]}`, body)
	require.Equal(t, []string{"sess_1", "sess_2"}, b.admin.attached)

	status, body = b.do(t, http.MethodDelete, "/v1/sessions/sess_1", "")
	require.Equal(t, 204, status)
	require.Empty(t, body)
	require.Equal(t, []string{"sess_1"}, b.admin.detached)

	status, body = b.do(t, http.MethodGet, "/v1/functions", "")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"parameters":{ "description": "<b>" },`, "parameters are the registered bytes")
	require.JSONEq(t, `{"functions":[{"name":"get_weather","parameters":{"description":"<b>"},"verifies":true,"policy":{},"pool":"weather",
		"changed_at":"2026-11-29T12:00:00Z","effective_policy":{},"executors":[
		{"id":"one","last_seen_at":"2026-11-29T12:00:00Z","current":true},{"id":"two","last_seen_at":"2026-11-29T12:00:01Z","current":false}]},
		{"name":"f","policy":{},"pool":"","changed_at":"0001-01-01T00:00:00Z","effective_policy":{},"executors":[]}]}`, body)
}

func TestEmptyListsAreLists(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	_, body := b.do(t, http.MethodGet, "/v1/sessions", "")
	require.JSONEq(t, `{"sessions":[]}`, body)
	_, body = b.do(t, http.MethodGet, "/v1/functions", "")
	require.JSONEq(t, `{"functions":[]}`, body)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	for name, tt := range map[string]struct {
		method, path, body, media string
		status                    int
		code                      string
	}{
		"unknown path":       {"GET", "/v2", "", "", 404, "not_found"},
		"unknown admin path": {"GET", "/v1/nothing", "", "", 404, "not_found"},
		"wrong method":       {"PUT", "/v1/sessions", "", "", 405, "method_not_allowed"},
		"no media type":      {"POST", "/v1/sessions", `{"ids":["a"]}`, "", 415, "unsupported_media_type"},
		"a form":             {"POST", "/v1/sessions", `ids=a`, "application/x-www-form-urlencoded", 415, "unsupported_media_type"},
		"no JSON":            {"POST", "/v1/sessions", `ids`, json, 400, "invalid_body"},
		"two values":         {"POST", "/v1/sessions", `{"ids":["a"]} {}`, json, 400, "invalid_body"},
		"unknown member":     {"POST", "/v1/sessions", `{"ids":["a"],"id":"b"}`, json, 400, "invalid_body"},
		"no ids":             {"POST", "/v1/sessions", `{}`, json, 400, "invalid_ids"},
		"too many ids":       {"POST", "/v1/sessions", `{"ids":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, json, 400, "invalid_ids"},
		"empty id":           {"POST", "/v1/sessions", `{"ids":["a",""]}`, json, 400, "invalid_id"},
		"line break":         {"POST", "/v1/sessions", `{"ids":["a\r\nb"]}`, json, 400, "invalid_id"},
		"slash":              {"DELETE", "/v1/sessions/a%2Fb", "", "", 400, "invalid_id"},
		"long id":            {"DELETE", "/v1/sessions/" + strings.Repeat("a", 257), "", "", 400, "invalid_id"},
		"huge body":          {"POST", "/v1/sessions", `{"ids":["` + strings.Repeat("a", 1<<20) + `"]}`, json, 413, "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := b.do(t, tt.method, tt.path, tt.body, asked, tt.media)
			require.Equal(t, tt.status, status, body)
			require.Contains(t, body, `{"error":{"code":"`+tt.code+`","message":"`)
		})
	}
	t.Cleanup(func() { require.Empty(t, b.admin.attached) })
}

func TestFailuresBehind(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	b.admin.err = errMissing
	status, body := b.do(t, http.MethodPost, "/v1/sessions", `{"ids":["a"]}`, asked, json)
	require.Equal(t, 503, status)
	require.JSONEq(t, `{"error":{"code":"unavailable","message":"it is missing"}}`, body)
	b.admin.err = ops.ErrNotStarted
	status, body = b.do(t, http.MethodGet, "/v1/functions", "")
	require.Equal(t, 503, status)
	require.Contains(t, body, `"code":"not_started"`)
}

func TestToken(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{AdminToken: token})
	for _, header := range []string{"", "Bearer ", "Bearer wrong", token, "Basic " + token} {
		status, body := b.do(t, http.MethodGet, "/v1/sessions", "", "Authorization", header)
		require.Equal(t, 401, status, header)
		require.Contains(t, body, `"code":"unauthorized"`)
	}
	status, _ := b.do(t, http.MethodGet, "/v1/sessions", "", "Authorization", "Bearer "+token)
	require.Equal(t, 200, status)
	for _, open := range []string{"/healthz", "/readyz", "/metrics"} {
		status, _ := b.do(t, http.MethodGet, open, "")
		require.Equal(t, 200, status, open)
	}
}

// TestBrowsersAreKeptOut: without a token, any page that is open in a browser of this
// machine can send requests to loopback.
func TestBrowsersAreKeptOut(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	status, _ := b.do(t, http.MethodPost, "/v1/sessions", `{"ids":["a"]}`, asked, json, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
	require.Equal(t, 403, status)
	status, _ = b.do(t, http.MethodGet, "/v1/sessions", "", "Host", "evil.example:8420")
	require.Equal(t, 403, status, "a name that resolves to loopback")
	status, _ = b.do(t, http.MethodGet, "/v1/sessions", "", "Host", "localhost:8420")
	require.Equal(t, 200, status)
	require.Empty(t, b.admin.attached)
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{":8420", "0.0.0.0:8420", "[::]:8420", "10.0.0.1:8420", "example.org:80"} {
		require.ErrorIs(t, ops.CheckAddress(listen, ""), ops.ErrNoToken, listen)
		require.NoError(t, ops.CheckAddress(listen, token), listen)
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:8420", "[::1]:8420", "127.1.2.3:1", "[::ffff:127.0.0.1]:1"} {
		require.NoError(t, ops.CheckAddress(listen, ""), listen)
	}
	require.ErrorContains(t, ops.CheckAddress("127.0.0.1", ""), "want host:port")
	require.ErrorContains(t, ops.CheckAddress("127.0.0.1:1", "short"), "at least 16")
	taken := setup(t, ops.Config{})
	_, err := ops.New(ops.Config{Listen: taken.Addr(), Admin: &admin{}, Metrics: ops.NewMetrics("").Handler()})
	require.ErrorContains(t, err, "--listen")
}

func TestClient(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{AdminToken: token, Checks: []ops.Check{{Name: "x", Run: func(context.Context) error { return errMissing }}}})
	b.admin.sessions = []ops.Session{{ID: "sess_1"}}
	b.admin.functions = []ops.Function{{Function: call.Function{Name: "f", Parameters: []byte(`{ "a": 1.0 }`)}, Executors: []ops.Executor{{ID: "one"}}}}
	c := b.client(t, token)
	require.NoError(t, c.Watch(t.Context(), "a", "b"))
	require.NoError(t, c.Unwatch(t.Context(), "a", "b"))
	require.Equal(t, []string{"a", "b"}, b.admin.attached)
	require.Equal(t, []string{"a", "b"}, b.admin.detached)
	sessions, err := c.Sessions(t.Context())
	require.NoError(t, err)
	require.Equal(t, b.admin.sessions, sessions)
	functions, err := c.Functions(t.Context())
	require.NoError(t, err)
	require.Equal(t, b.admin.functions, functions)
	ready, err := c.Readiness(t.Context())
	require.NoError(t, err)
	require.False(t, ready.Ready)

	var refused *opsclient.Error
	require.ErrorAs(t, b.client(t, "").Watch(t.Context(), "a"), &refused)
	require.Equal(t, 401, refused.Status)
	require.Equal(t, "unauthorized", refused.Code)
	require.ErrorContains(t, c.Unwatch(t.Context(), "a/b"), "a/b")

	_, err = opsclient.New(opsclient.Config{URL: "127.0.0.1:8420"})
	require.Error(t, err)
	away, err := opsclient.New(opsclient.Config{URL: "http://127.0.0.1:1", HTTPClient: b.http})
	require.NoError(t, err)
	require.ErrorContains(t, away.Watch(t.Context(), "a"), "no dispatcher answers")
}
