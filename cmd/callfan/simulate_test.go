package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

var simulatorURL = regexp.MustCompile(`listens on (http://\S+/v1)`)

// simulate starts the simulator on a free port and returns its base URL.
func simulate(t *testing.T, args ...string) (*programtest.Process, string) {
	t.Helper()
	p := programtest.Start(t, command(t, append([]string{"simulate", "--listen", "127.0.0.1:0"}, args...)...))
	p.Await(p.Stdout, "OPENAI_API_KEY=any\n")
	match := simulatorURL.FindStringSubmatch(p.Stdout.String())
	require.NotNil(t, match, p.Stdout)
	return p, match[1]
}

func client(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("any"), option.WithMaxRetries(0))
}

func newSession(t *testing.T, url, text string) *openai.AgentSession {
	t.Helper()
	api := client(url)
	session, err := api.Beta.Agents.Sessions.New(t.Context(), openai.BetaAgentSessionNewParams{
		Agent:       openai.BetaAgentSessionNewParamsAgent{Model: openai.String("gpt-6-astra")},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input:       openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String(text)},
	})
	require.NoError(t, err)
	return session
}

func TestSimulate(t *testing.T) {
	t.Parallel()
	p, url := simulate(t)
	require.Contains(t, p.Stdout.String(), "export OPENAI_BASE_URL="+url+" OPENAI_API_KEY=any\n")
	session := newSession(t, url, `{"say":"hello"}`)
	api := client(url)
	got, err := api.Beta.Agents.Sessions.Get(t.Context(), session.ID)
	require.NoError(t, err)
	require.Equal(t, openai.AgentSessionStatusIdle, got.Status)

	code, second := programtest.Run(t, command(t, "simulate", "--listen", url[len("http://"):len(url)-len("/v1")]))
	require.Equal(t, exitFailed, code)
	require.Contains(t, second.Stderr.String(), "choose another address")

	require.Equal(t, exitOK, p.Stop())
	require.Empty(t, p.Stderr.String())
}

func TestSimulateWithSwitchesAndFaults(t *testing.T) {
	t.Parallel()
	faults := filepath.Join(t.TempDir(), "faults.json")
	require.NoError(t, os.WriteFile(faults, []byte(`{"rules":[{"kind":"unavailable","endpoint":"session_get","next":1}]}`), 0o600))
	_, url := simulate(t, "--switch", "CreateStatus=200", "--switch", "ErrorNamesCall=false", "--faults", faults, "--profile", "openagentcore")
	var status int
	api := client(url)
	_, err := api.Beta.Agents.Sessions.New(t.Context(), openai.BetaAgentSessionNewParams{
		Agent:       openai.BetaAgentSessionNewParamsAgent{Model: openai.String("m")},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input:       openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String("hello")},
	}, option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(r)
		if err == nil {
			status = res.StatusCode
		}
		return res, err
	}))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	_, err = api.Beta.Agents.Sessions.Get(t.Context(), "sess_x")
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusServiceUnavailable, refused.StatusCode)

	stats, err := http.Get(url[:len(url)-len("/v1")] + "/_sim/stats") //nolint:noctx // a test on loopback
	require.NoError(t, err)
	defer stats.Body.Close()
	raw, err := io.ReadAll(stats.Body)
	require.NoError(t, err)
	var counts struct {
		Sessions int `json:"sessions"`
	}
	require.NoError(t, json.Unmarshal(raw, &counts))
	require.Equal(t, 1, counts.Sessions)
}

// documented are the curl commands of docs/simulator.md: method, path and body.
var documented = regexp.MustCompile(`(?m)^curl (?:-X (\w+) )?http://127\.0\.0\.1:8421(\S+)(?: -H '[^']+')*(?: -d '([^']+)')?$`)

func TestSimulatorDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/simulator.md")
	require.NoError(t, err)
	commands := documented.FindAllStringSubmatch(string(text), -1)
	require.Len(t, commands, strings.Count(string(text), "\ncurl "), "all curl commands are understood here")
	_, url := simulate(t, "--model-delay", "1ms", "--queue-delay", "1ms", "--stream-delay", "1ms")
	answers := make(map[string]string)
	for _, command := range commands {
		method := cmp.Or(command[1], http.MethodGet)
		if command[1] == "" && command[3] != "" {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, url[:len(url)-len("/v1")]+command[2], strings.NewReader(command[3]))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer any")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", command[0], answer)
		answers[command[2]] = string(answer)
	}
	require.Contains(t, answers["/v1/responses"], `"call_id":"call_1"`)
	require.Contains(t, answers["/_sim/stats"], `"responses":1`)
	require.Contains(t, answers["/_sim/outputs"], `"call_id":"call_1"`)
	api := client(url)
	_, err = api.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")},
	})
	require.Error(t, err, "the documented fault")

	code, help := programtest.Run(t, command(t, "simulate", "--help"))
	require.Equal(t, exitOK, code)
	require.Contains(t, help.Stdout.String(), "/_sim/outputs")
}

func TestSimulateWithFixtures(t *testing.T) {
	t.Parallel()
	_, url := simulate(t, "--fixtures")
	api := client(url)
	session, err := api.Beta.Agents.Sessions.Get(t.Context(), "session_id")
	require.NoError(t, err)
	require.Equal(t, "session_id", session.ID)
}
