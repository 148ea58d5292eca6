package webhooks_test

import (
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/internal/webhooks"
)

// simulate starts a simulator that delivers each webhook twice to the receiver.
func simulate(t *testing.T, r *receiver) openai.Client {
	t.Helper()
	switches := simulator.ProfileOpenAI.Switches()
	switches.WebhookDuplicates = 1
	sim, err := simulator.New(simulator.Config{
		Switches: &switches,
		Webhooks: []simulator.WebhookEndpoint{{URL: "http://" + r.Addr() + webhooks.Path, Secret: secret}},
	})
	require.NoError(t, err)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(func() {
		sim.Close()
		server.Client().CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("any"), option.WithHTTPClient(server.Client()))
}

func TestTheSimulatorsSessions(t *testing.T) {
	t.Parallel()
	r := start(t)
	client := simulate(t, r)
	created, err := client.Beta.Agents.Sessions.New(t.Context(), openai.BetaAgentSessionNewParams{
		Agent: openai.BetaAgentSessionNewParamsAgent{
			Model: openai.String("gpt-6-astra"),
			Tools: []openai.AgentToolParamUnion{{OfParamFunction: &openai.AgentToolParamFunction{
				Name: "f", Description: "f", Parameters: map[string]any{"type": "object"},
			}}},
		},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input:       openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String(`{"rounds":[[{"name":"f","arguments":{}}]],"say":"done"}`)},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		counted := r.counted()
		return slices.Contains(counted, "agent.session.action_required accepted") &&
			slices.Contains(counted, "agent.session.action_required repeated")
	}, 10*time.Second, 5*time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Equal(t, []string{created.ID}, r.sessions)
}

func TestTheSimulatorsResponses(t *testing.T) {
	t.Parallel()
	r := start(t)
	client := simulate(t, r)
	made, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "gpt-6-astra", Background: openai.Bool(true),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(`{"say":"done"}`)},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		counted := r.counted()
		return slices.Contains(counted, "response.completed accepted") && slices.Contains(counted, "response.completed repeated")
	}, 10*time.Second, 5*time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Equal(t, []string{made.ID}, r.finished)
}
