package sources_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/internal/sources"
)

// simulate starts a simulator with one session that waits for a call, and an
// adapter to it.
func simulate(t *testing.T, cfg simulator.Config) (client *agents.Client, session string) {
	t.Helper()
	sim, err := simulator.New(cfg)
	require.NoError(t, err)
	server := httptest.NewServer(sim.Handler())
	client, err = agents.New(agents.Config{BaseURL: server.URL + "/v1"})
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		sim.Close()
		server.Client().CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	official := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("any"), option.WithHTTPClient(server.Client()))
	created, err := official.Beta.Agents.Sessions.New(t.Context(), openai.BetaAgentSessionNewParams{
		Agent: openai.BetaAgentSessionNewParamsAgent{
			Model: openai.String("gpt-6-astra"),
			Tools: []openai.AgentToolParamUnion{{OfParamFunction: &openai.AgentToolParamFunction{
				Name: "f", Description: "f", Parameters: map[string]any{"type": "object"},
			}}},
		},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input:       openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String(`{"rounds":[[{"name":"f","arguments":{}}]],"say":"done"}`)},
		Metadata:    map[string]string{"dispatch": "nats"},
	})
	require.NoError(t, err)
	return client, created.ID
}

func TestWatchGoesOnWhenTheSimulatorCutsStreams(t *testing.T) {
	t.Parallel()
	client, session := simulate(t, simulator.Config{
		ModelDelay: 300 * time.Millisecond,
		Faults: simulator.Faults{Rules: []simulator.FaultRule{
			{Kind: simulator.FaultStreamCut, Next: 1}, {Kind: simulator.FaultStreamError, Next: 1},
		}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var nudges []string
	var watching sync.WaitGroup
	watching.Go(func() {
		sources.NewStream(client, sources.StreamConfig{MinBackoff: 5 * time.Millisecond}).Watch(ctx, session, func(trigger string) {
			mu.Lock()
			defer mu.Unlock()
			nudges = append(nudges, trigger)
		})
	})
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		lost := 0
		for _, n := range nudges {
			if n == sources.TriggerStreamLost {
				lost++
			}
		}
		return lost == 2 && nudges[len(nudges)-1] != sources.TriggerStreamLost
	}, 20*time.Second, 5*time.Millisecond)
	cancel()
	watching.Wait()
}

func TestPollFindsSessionsOfTheSimulator(t *testing.T) {
	t.Parallel()
	client, session := simulate(t, simulator.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	to := &recorder{}
	var polling sync.WaitGroup
	polling.Go(func() {
		sources.Poll{API: client, Selectors: []sources.Selector{{Metadata: map[string]string{"dispatch": "nats"}}}, Interval: 10 * time.Millisecond}.Run(ctx, to)
	})
	var did []string
	require.Eventually(t, func() bool {
		did = append(did, to.take()...)
		return slices.Contains(did, "attach "+session) && slices.Contains(did, "nudge "+session+" listed")
	}, 20*time.Second, 5*time.Millisecond)
	cancel()
	polling.Wait()
}
