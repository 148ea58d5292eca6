package samples

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

const (
	question = "Look up customers 123 and 456."
	answer   = "Customer 123 is Example Customer (plan pro). Customer 456 was not found."
)

// TestReturnResult answers the two calls of a turn with the sample of each language: with required_actions as they come
// in the event agent.session.requires_action, and as a session that is retrieved has them.
func TestReturnResult(t *testing.T) {
	t.Parallel()
	url := simulate(t)
	programs := map[string]func(t *testing.T, args ...string) programtest.Command{
		"go": goProgram,
		"python": func(t *testing.T, args ...string) programtest.Command {
			t.Helper()
			return pythonProgram(t, "agents.py", args...)
		},
		"javascript": func(t *testing.T, args ...string) programtest.Command {
			t.Helper()
			return javascriptProgram(t, "agents.mjs", args...)
		},
		"java": func(t *testing.T, args ...string) programtest.Command {
			t.Helper()
			return javaProgram(t, "Agents", args...)
		},
	}
	// What each sample's way to write JSON makes of the two customers.
	outputs := map[string][]string{
		"go":         {`{"customer":{"name":"Example Customer","plan":"pro"},"found":true}`, `{"customer":null,"found":false}`},
		"python":     {`{"found": true, "customer": {"name": "Example Customer", "plan": "pro"}}`, `{"found": false, "customer": null}`},
		"javascript": {`{"found":true,"customer":{"name":"Example Customer","plan":"pro"}}`, `{"found":false,"customer":null}`},
		"java":       {`{"found":true,"customer":{"name":"Example Customer","plan":"pro"}}`, `{"found":false,"customer":null}`},
	}
	for language, program := range programs {
		for _, how := range []string{"stream", "retrieve"} {
			t.Run(language+"/"+how, func(t *testing.T) {
				t.Parallel()
				session := strings.TrimSpace(run(t, url, program(t, how, "get_customer.json", question)))
				require.Equal(t, outputs[language], recorded(t, url, session))
				requireCompleted(t, url, session)
			})
		}
	}
}

// recorded returns the outputs that the simulator accepted for a session, in the order of the calls.
func recorded(t *testing.T, url, session string) []string {
	t.Helper()
	var body struct {
		Results []struct {
			Success bool   `json:"success"`
			Output  string `json:"output"`
		} `json:"results"`
	}
	require.NoError(t, json.Unmarshal(get(t, url+"/_sim/results?session="+session), &body))
	var outputs []string
	for _, result := range body.Results {
		require.True(t, result.Success)
		outputs = append(outputs, result.Output)
	}
	return outputs
}

// requireCompleted fails unless the session's one turn has completed, with the function as the sample defines it and
// the answer that the two outputs lead to.
func requireCompleted(t *testing.T, url, id string) {
	t.Helper()
	api := client(url)
	session, err := api.Beta.Agents.Sessions.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, openai.AgentSessionStatusIdle, session.Status)
	requireDefined(t, session)

	turns, err := api.Beta.Agents.Sessions.Turns.List(t.Context(), id, openai.BetaAgentSessionTurnListParams{})
	require.NoError(t, err)
	require.Len(t, turns.Data, 1)
	require.EqualValues(t, "completed", turns.Data[0].Status)

	items, err := api.Beta.Agents.Sessions.Items.List(t.Context(), id, openai.BetaAgentSessionItemListParams{Order: "asc"})
	require.NoError(t, err)
	require.Contains(t, items.Data[len(items.Data)-1].RawJSON(), `"text":"`+answer+`"`)
}

// requireDefined fails unless the session has the function as get_customer.json defines it.
func requireDefined(t *testing.T, session *openai.AgentSession) {
	t.Helper()
	raw, err := os.ReadFile("get_customer.json")
	require.NoError(t, err)
	var want, got map[string]any
	require.NoError(t, json.Unmarshal(raw, &want))
	require.NotEmpty(t, session.Agent.Tools)
	require.NoError(t, json.Unmarshal([]byte(session.Agent.Tools[0].RawJSON()), &got))
	require.Subset(t, got, want)
}

// TestRequiredAction compares what the simulator lists in required_actions with the sample of such an entry.
func TestRequiredAction(t *testing.T) {
	t.Parallel()
	tool, err := os.ReadFile("get_customer.json")
	require.NoError(t, err)
	api := client(simulate(t))
	session, err := api.Beta.Agents.Sessions.New(t.Context(), openai.BetaAgentSessionNewParams{
		Agent: openai.BetaAgentSessionNewParamsAgent{
			Model: openai.String("gpt-6-astra"),
			Tools: []openai.AgentToolParamUnion{param.Override[openai.AgentToolParamUnion](json.RawMessage(tool))},
		},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input: openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String(
			`{"rounds":[[{"name":"get_customer","arguments":{"customer_id":"123"},"call_id":"call_123"}]]}`)},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		session, err = api.Beta.Agents.Sessions.Get(t.Context(), session.ID)
		return err != nil || session.Status == openai.AgentSessionStatusRequiresAction
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, session.RequiredActions, 1)
	var want, got map[string]any
	raw, err := os.ReadFile("required_action.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &want))
	require.NoError(t, json.Unmarshal([]byte(session.RequiredActions[0].RawJSON()), &got))
	require.NotEmpty(t, got["turn_id"])
	got["turn_id"] = want["turn_id"] // The service makes these up.
	require.Equal(t, want, got)
}
