package simulator_test

import (
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

func TestRestartBetweenResponses(t *testing.T) {
	t.Parallel()
	d := startDurable(t, simulator.Config{})
	ctx := testContext(t)
	conv, err := d.client.Conversations.New(ctx, conversationParams())
	require.NoError(t, err)
	input := `{"rounds":[[{"name":"f","arguments":{"n":1}}]],"say":"ok"}`
	params := request(input, plainTool("f"))
	params.Conversation.OfString = openai.String(conv.ID)
	talked := d.respond(t, params)
	chained := d.respond(t, request(input, plainTool("f")))
	gone := d.respond(t, request(`{"say":"x"}`))
	require.NoError(t, d.client.Responses.Delete(ctx, gone.ID))
	stream := d.client.Responses.NewStreaming(ctx, request(`{"say":"streamed"}`))
	streamed := responseEventTypes(stream)
	id := stream.Current().Response.ID
	_, err = d.client.Responses.New(ctx, following(chained, "["+functionOutput("call_x", "1")+"]"))
	require.Error(t, err)
	before, seen := d.sim.Stats(), d.sim.Responses()

	d.restart()
	require.Equal(t, before, d.sim.Stats())
	require.Equal(t, seen, d.sim.Responses())
	same, err := d.client.Responses.Get(ctx, chained.ID, responses.ResponseGetParams{})
	require.NoError(t, err)
	require.Equal(t, chained.RawJSON(), same.RawJSON())
	_, err = d.client.Responses.Get(ctx, gone.ID, responses.ResponseGetParams{})
	require.Error(t, err)
	again := d.client.Responses.GetStreaming(ctx, id, responses.ResponseGetParams{}, option.WithQuery("stream", "true"))
	require.Equal(t, streamed, responseEventTypes(again))
	require.Equal(t, "ok", d.respond(t, following(chained, answered(chained, weatherTools), plainTool("f"))).OutputText())
	params.Input = request(answered(talked, weatherTools)).Input
	require.Equal(t, "ok", d.respond(t, params).OutputText())
	params.Input = request(`[` + `{"role":"user","content":"{\"say\":\"whole\"}"},` + talked.Output[1].RawJSON() + "," +
		functionOutput(talked.Output[1].CallID, "1") + "]").Input
	params.Conversation = responses.ResponseNewParamsConversationUnion{}
	_, err = d.client.Responses.New(ctx, params)
	require.ErrorContains(t, err, "400", "which reasoning a call came with is not forgotten")
}

func TestRestartWhileAResponseIsMade(t *testing.T) {
	t.Parallel()
	d := startDurable(t, simulator.Config{})
	params := inBackground(`{"rounds":[[{"name":"f"},{"name":"f","after_ms":300}]],"say":"ok"}`, plainTool("f"))
	made := d.respond(t, params)
	require.Eventually(t, func() bool {
		got, err := d.client.Responses.Get(testContext(t), made.ID, responses.ResponseGetParams{})
		return err == nil && len(callsOf(got)) == 1
	}, 10*time.Second, time.Millisecond)
	d.restart()
	done := d.await(t, made.ID, responses.ResponseStatusCompleted)
	require.Len(t, callsOf(done), 2)
	require.EqualValues(t, 1, d.sim.Stats().ResponsesByStatus["completed"])
}
