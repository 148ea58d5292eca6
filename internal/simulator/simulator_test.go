package simulator_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a simulator behind a real HTTP server, and an official client for it.
type bench struct {
	sim    *simulator.Simulator
	client openai.Client
	url    string
}

func start(t *testing.T, cfg simulator.Config) *bench {
	t.Helper()
	sim, err := simulator.New(cfg)
	require.NoError(t, err)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(func() {
		sim.Close()
		server.Client().CloseIdleConnections()
		server.Close()
	})
	return &bench{sim: sim, url: server.URL, client: openai.NewClient(
		option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("test-key"), option.WithMaxRetries(0),
		option.WithHTTPClient(server.Client()))}
}

// with returns a config whose switches are the profile's, changed.
func with(change func(*simulator.Switches)) simulator.Config {
	sw := simulator.ProfileOpenAI.Switches()
	change(&sw)
	return simulator.Config{Switches: &sw}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func functionTool(name string, async bool) openai.AgentToolParamUnion {
	return openai.AgentToolParamUnion{OfParamFunction: &openai.AgentToolParamFunction{
		Name: name, Description: name, Async: openai.Bool(async),
		Parameters: map[string]any{"type": "object", "properties": map[string]any{}},
	}}
}

func sessionParams(text string, functions ...string) openai.BetaAgentSessionNewParams {
	params := openai.BetaAgentSessionNewParams{
		Agent:       openai.BetaAgentSessionNewParamsAgent{Model: openai.String("gpt-6-astra")},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input:       openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String(text)},
	}
	for _, name := range functions {
		params.Agent.Tools = append(params.Agent.Tools, functionTool(strings.TrimPrefix(name, "async:"),
			strings.HasPrefix(name, "async:")))
	}
	return params
}

func (b *bench) create(t *testing.T, text string, functions ...string) string {
	t.Helper()
	ses, err := b.client.Beta.Agents.Sessions.New(testContext(t), sessionParams(text, functions...))
	require.NoError(t, err)
	return ses.ID
}

func (b *bench) get(t *testing.T, id string) *openai.AgentSession {
	t.Helper()
	ses, err := b.client.Beta.Agents.Sessions.Get(testContext(t), id)
	require.NoError(t, err)
	return ses
}

func success(a openai.AgentSessionRequiredActionUnion, output string) openai.AgentSessionInputParamUnion {
	return openai.AgentSessionInputParamUnion{OfParamAgentSessionInputToolResult: &openai.AgentSessionInputParamAgentSessionInputToolResult{
		TurnID: a.TurnID, CallID: a.CallID, Success: true,
		Output: openai.AgentFunctionCallOutputParamUnion{OfString: openai.String(output)},
	}}
}

func failure(a openai.AgentSessionRequiredActionUnion, message string) openai.AgentSessionInputParamUnion {
	return openai.AgentSessionInputParamUnion{OfParamAgentSessionInputToolResult: &openai.AgentSessionInputParamAgentSessionInputToolResult{
		TurnID: a.TurnID, CallID: a.CallID, Success: false, Error: openai.String(message),
	}}
}

func (b *bench) post(t *testing.T, id, key string, events ...openai.AgentSessionInputParamUnion) error {
	t.Helper()
	params := openai.BetaAgentSessionEventNewParams{Events: events}
	if key != "" {
		params.IdempotencyKey = openai.String(key)
	}
	return b.client.Beta.Agents.Sessions.Events.New(testContext(t), id, params)
}

func requireAPIError(t *testing.T, err error, status int, code, message string) {
	t.Helper()
	var apiErr *openai.Error
	require.ErrorAs(t, err, &apiErr)
	require.Equal(t, status, apiErr.StatusCode)
	require.Equal(t, code, apiErr.Code)
	if message != "" {
		require.Equal(t, message, apiErr.Message)
	}
}

// answerAll answers what the session requires, by function, until it is idle, and returns the last assistant text.
func (b *bench) answerAll(t *testing.T, id string, handler func(name, arguments string) string) (text string, rounds int) {
	t.Helper()
	for {
		var ses *openai.AgentSession
		require.Eventually(t, func() bool {
			ses = b.get(t, id)
			return ses.Status == openai.AgentSessionStatusIdle || len(ses.RequiredActions) > 0
		}, 10*time.Second, time.Millisecond)
		if ses.Status == openai.AgentSessionStatusIdle {
			break
		}
		rounds++
		var events []openai.AgentSessionInputParamUnion
		for _, a := range ses.RequiredActions {
			events = append(events, success(a, handler(a.Name, a.JSON.Arguments.Raw())))
		}
		require.NoError(t, b.post(t, id, "", events...))
	}
	return b.lastText(t, id), rounds
}

func (b *bench) lastText(t *testing.T, id string) string {
	t.Helper()
	items, err := b.client.Beta.Agents.Sessions.Items.List(testContext(t), id, openai.BetaAgentSessionItemListParams{Limit: openai.Int(1)})
	require.NoError(t, err)
	require.NotEmpty(t, items.Data)
	require.Equal(t, "message", items.Data[0].Type)
	return items.Data[0].AsMessage().OutputText()
}

func script(t *testing.T, say string, rounds ...[]map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"rounds": rounds, "say": say})
	require.NoError(t, err)
	return string(raw)
}

// eventTypes reads a stream to its end, or until stop, and returns the types it saw.
func eventTypes(stream *ssestream.Stream[openai.AgentSessionEventUnion], stop string) (types []string) {
	for stream.Next() {
		types = append(types, stream.Current().Type)
		if stream.Current().Type == stop {
			break
		}
	}
	return types
}
