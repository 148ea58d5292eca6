package simulator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

// TestPatientClientLosesNothing breaks everything at random, under both profiles; clients that read required_actions
// and send their saved results again get every session through, and each call keeps its first result.
func TestPatientClientLosesNothing(t *testing.T) {
	t.Parallel()
	for _, profile := range simulator.Profiles() {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			b := start(t, simulator.Config{Profile: profile, Faults: simulator.Faults{
				Seed: 11, Latency: simulator.Span{MaxMS: 3},
				Rules: []simulator.FaultRule{
					{Kind: simulator.FaultRateLimited, Rate: 0.05, RetryAfter: "0"},
					{Kind: simulator.FaultInternalError, Rate: 0.05},
					{Kind: simulator.FaultUnavailable, Rate: 0.05},
					{Kind: simulator.FaultBadGateway, Rate: 0.05},
					{Kind: simulator.FaultResponseLost, Endpoint: simulator.EndpointEventsPost, Rate: 0.1},
					{Kind: simulator.FaultAcceptedLost, Rate: 0.1},
					{Kind: simulator.FaultStreamCut, Rate: 0.05},
					{Kind: simulator.FaultStreamError, Rate: 0.05},
				},
				ListedAfterAccept: simulator.Span{MaxMS: 20},
				RegistrationDelay: simulator.Span{MaxMS: 20},
			}})
			var wg sync.WaitGroup
			for n := range 12 {
				wg.Go(func() { b.runPatiently(t, n) })
			}
			wg.Wait()
			st := b.sim.Stats()
			require.EqualValues(t, 12*2*8, st.ResultsAccepted)
			require.EqualValues(t, 12, st.TurnsCompleted)
			require.Zero(t, st.Pending)
			require.Zero(t, st.Conflicts, "equal results never conflict")
			require.NotEmpty(t, st.FaultsFired)
		})
	}
}

func (b *bench) runPatiently(t *testing.T, n int) {
	ctx := testContext(t)
	round := make([]map[string]any, 8)
	for i := range round {
		round[i] = map[string]any{"name": "f", "arguments": map[string]any{"n": n, "i": i}}
	}
	sessions := &b.client.Beta.Agents.Sessions
	var id string
	for id == "" && ctx.Err() == nil {
		if ses, err := sessions.New(ctx, sessionParams(script(t, "ok", round, round), "f")); err == nil {
			id = ses.ID
		}
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() { // A watcher that opens its stream again and again.
		defer close(watched)
		for watching.Err() == nil {
			stream := sessions.Events.StreamStreaming(watching, id)
			eventTypes(stream, "agent.session.idle")
			_ = stream.Close()
		}
	}()
	for ctx.Err() == nil {
		ses, err := sessions.Get(ctx, id)
		if err != nil {
			continue
		}
		if ses.Status == openai.AgentSessionStatusIdle {
			break
		}
		var events []openai.AgentSessionInputParamUnion
		for _, a := range ses.RequiredActions {
			events = append(events, success(a, "result of "+a.CallID))
		}
		if len(events) > 0 {
			_ = b.post(t, id, "", events...) // What failed is still required.
		}
	}
	stop()
	<-watched
	results, err := b.sim.Results(id)
	assert.NoError(t, err)
	for _, r := range results {
		assert.Equal(t, fmt.Sprintf("%q", "result of "+r.CallID), string(r.Output))
	}
	assert.NoError(t, ctx.Err(), "not through within %s", 20*time.Second)
}
