package simulator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

// TestPatientRuns has many clients go through their rounds while requests fail and answers are lost. Each repeats its
// request until it is answered, so every run ends well and no call is given two outputs.
func TestPatientRuns(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{Faults: simulator.Faults{Seed: 7, Rules: []simulator.FaultRule{
		{Kind: simulator.FaultRateLimited, Endpoint: simulator.EndpointResponseCreate, Rate: 0.1},
		{Kind: simulator.FaultInternalError, Endpoint: simulator.EndpointResponseCreate, Rate: 0.1},
		{Kind: simulator.FaultResponseLost, Endpoint: simulator.EndpointResponseCreate, Rate: 0.2},
	}}})
	const runs, rounds = 12, 3
	var wg sync.WaitGroup
	for n := range runs {
		wg.Go(func() { b.runResponses(testContext(t), t, fmt.Sprintf("run %d", n)) })
	}
	wg.Wait()
	st := b.sim.Stats()
	require.Zero(t, st.OutputsContradicted)
	require.Positive(t, st.FaultsFired[simulator.FaultResponseLost])
	require.Equal(t, st.FaultsFired[simulator.FaultResponseLost]+runs*(rounds+1), st.Responses)
	require.Equal(t, st.Responses, st.ResponsesByStatus["completed"])
}

func (b *bench) runResponses(ctx context.Context, t *testing.T, say string) {
	round := `[{"name":"f","arguments":{"i":1}},{"name":"f","arguments":{"i":2}}]`
	params := request(`{"rounds":[`+round+`,`+round+`,`+round+`],"say":"`+say+`"}`, plainTool("f"))
	for {
		var made *responses.Response
		for made == nil && ctx.Err() == nil {
			made, _ = b.client.Responses.New(ctx, params) // What failed is asked again.
		}
		if made == nil || len(callsOf(made)) == 0 {
			assert.NotNil(t, made)
			assert.Equal(t, say, made.OutputText())
			return
		}
		params = following(made, answered(made, func(_, arguments string) string { return "result of " + arguments }), plainTool("f"))
	}
}

func TestRoundsInPieces(t *testing.T) {
	t.Parallel()
	b := start(t, with(func(sw *simulator.Switches) { sw.RefuseSecondOutput = true }))
	made := b.respond(t, request(`{"rounds":[[{"name":"f"},{"name":"g","after_results":1}]],"say":"ok"}`, plainTool("f"), plainTool("g")))
	require.Equal(t, []string{"f {}"}, callsOf(made))
	next := b.respond(t, following(made, answered(made, weatherTools), plainTool("f"), plainTool("g")))
	require.Equal(t, []string{"g {}"}, callsOf(next))
	_, err := b.client.Responses.New(testContext(t), following(next, "["+functionOutput(made.Output[1].CallID, "again")+"]"))
	requireRefusal(t, err, 400, "input", "", "Duplicate output for function call "+made.Output[1].CallID+".")
}

func TestToolsAreNotCarriedOver(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	made := b.respond(t, request("北京和上海哪个更热?差几度?", weatherTool, calculateTool))
	next := b.respond(t, following(made, answered(made, weatherTools)))
	require.Empty(t, callsOf(next))
	require.Empty(t, next.Tools)
}
