package agents_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/pkg/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a client and the server that it asks.
type api struct {
	*agents.Client
	*apitest.Server
}

func serve(t *testing.T, handler http.HandlerFunc, changes ...func(*agents.Config)) *api {
	t.Helper()
	server := apitest.Serve(t, handler)
	cfg := agents.Config{APIKey: apitest.Secret, BaseURL: server.URL}
	for _, change := range changes {
		change(&cfg)
	}
	client, err := agents.New(cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &api{client, server}
}

// envelope is the API's error body.
func envelope(code, message string) string {
	return `{"error":{"type":"` + code + `","code":"` + code + `","message":"` + message + `","param":null}}`
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
		"no scheme":        {agents.Config{APIKey: apitest.Secret, BaseURL: "localhost:8080"}, "http or https"},
		"not a URL":        {agents.Config{APIKey: apitest.Secret, BaseURL: "http://\x7f"}, "cannot be read"},
		"negative timeout": {agents.Config{APIKey: apitest.Secret, Timeout: -1}, "negative"},
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
	a := serve(t, apitest.ReplyJSON(200, `{"id":"sess/1","status":"idle","required_actions":[]}`), func(c *agents.Config) {
		c.APIKey, c.Organization, c.Project = apitest.Secret+"\n", "org_1", "proj_1"
	})
	_, err := a.Session(t.Context(), "sess/1")
	require.NoError(t, err)

	got := a.Asked()[0]
	require.Equal(t, "/v1/agents/sessions/sess%2F1", got.URI)
	require.Equal(t, "Bearer "+apitest.Secret, got.Header.Get("Authorization"))
	require.Equal(t, "agents=v1", got.Header.Get("OpenAI-Beta"))
	require.Equal(t, "org_1", got.Header.Get("OpenAI-Organization"))
	require.Equal(t, "proj_1", got.Header.Get("OpenAI-Project"))
}

func TestAServerGivenByURLNeedsNoKey(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, `{"id":"s","status":"idle","required_actions":[]}`), func(c *agents.Config) { c.APIKey = "" })
	_, err := a.Session(t.Context(), "s")
	require.NoError(t, err)
	require.NotEqual(t, "Bearer ", a.Asked()[0].Header.Get("Authorization"))
}

func TestSecretsAreNotLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	a := serve(t, apitest.ReplyJSON(401, envelope("unauthorized", "Incorrect API key provided: "+apitest.Secret)), func(c *agents.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	_, err := a.Session(t.Context(), "sess_1")
	require.Equal(t, call.RefusedAuth, apitest.Refused(t, err).Class)
	require.Contains(t, log.String(), "request_id=req_1")
	require.NotContains(t, log.String(), apitest.Secret)
}

func TestATimeoutIsBusyAndNotTheCallersDeadline(t *testing.T) {
	t.Parallel()
	a := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		func(c *agents.Config) { c.Timeout = 20 * time.Millisecond })
	_, err := a.Session(t.Context(), "sess_1")
	require.Equal(t, call.RefusedBusy, apitest.Refused(t, err).Class)
	require.NotErrorIs(t, err, errors.New("context deadline exceeded"))
	require.ErrorContains(t, err, "no answer in time")
	require.Equal(t, call.RefusedBusy, apitest.Refused(t, a.Stream(t.Context(), "sess_1", func() {}, nil)).Class)
}
