package simulator_test

import (
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/openai/openai-go/v3/webhooks"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

func inBackground(input string, tools ...string) responses.ResponseNewParams {
	params := request(input, tools...)
	params.Background = openai.Bool(true)
	return params
}

// await polls a response until it has a status.
func (b *bench) await(t *testing.T, id string, status responses.ResponseStatus) *responses.Response {
	t.Helper()
	var got *responses.Response
	require.Eventually(t, func() bool {
		var err error
		got, err = b.client.Responses.Get(testContext(t), id, responses.ResponseGetParams{})
		require.NoError(t, err)
		return got.Status == status
	}, 10*time.Second, 5*time.Millisecond)
	return got
}

func TestBackground(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{QueueDelay: 100 * time.Millisecond, ModelDelay: time.Second})
	made := b.respond(t, inBackground(`{"rounds":[[{"name":"f"}]],"say":"ok"}`, plainTool("f")))
	require.Equal(t, responses.ResponseStatusQueued, made.Status)
	require.True(t, made.Background)
	_, err := b.client.Responses.New(testContext(t), following(made, "hi"))
	requireRefusal(t, err, 400, "previous_response_id", "", "")
	b.await(t, made.ID, responses.ResponseStatusInProgress)
	done := b.await(t, made.ID, responses.ResponseStatusCompleted)
	require.Equal(t, []string{"f {}"}, callsOf(done))
	same, err := b.client.Responses.Cancel(testContext(t), made.ID)
	require.NoError(t, err, "a response that has ended is returned as it is")
	require.Equal(t, responses.ResponseStatusCompleted, same.Status)

	waited := b.respond(t, request(`{"say":"ok"}`))
	require.Equal(t, "ok", waited.OutputText())
	_, err = b.client.Responses.Cancel(testContext(t), waited.ID)
	requireRefusal(t, err, 400, "", "", "Cannot cancel a synchronous response.")
}

func TestCancelInTheMiddle(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	input := `{"rounds":[[{"name":"f"},{"name":"f","after_ms":60000}]],"say":"never"}`
	params := inBackground(input, plainTool("f"))
	stream := b.client.Responses.NewStreaming(testContext(t), params)
	var id string
	var types []string
	for stream.Next() {
		ev := stream.Current()
		types = append(types, ev.Type)
		if ev.Type == "response.created" {
			id = ev.Response.ID
		}
		if ev.Type == "response.output_item.done" && ev.Item.Type == "function_call" {
			got, err := b.client.Responses.Cancel(testContext(t), id)
			require.NoError(t, err)
			require.Equal(t, responses.ResponseStatusCancelled, got.Status)
			require.Len(t, callsOf(got), 1)
		}
	}
	require.NoError(t, stream.Err())
	require.Equal(t, []string{"response.created", "response.queued", "response.in_progress"}, types[:3])
	require.Equal(t, "response.output_item.done", types[len(types)-1], "a cancelled response has no last event")
}

func TestResumeStream(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{StreamDelay: 2 * time.Millisecond})
	ctx := testContext(t)
	first := b.client.Responses.NewStreaming(ctx, request(`{"rounds":[[{"name":"f","arguments":{"city":"Beijing"}}]]}`, plainTool("f")))
	var whole []string
	var id string
	for range 5 {
		require.True(t, first.Next())
		id = max(id, first.Current().Response.ID)
		whole = append(whole, first.Current().RawJSON())
	}
	require.NoError(t, first.Close())

	// The Go client sends "stream" in the body of the GET, so that the query has to say it.
	resume := func(after int64) (rest []responses.ResponseStreamEventUnion) {
		params := responses.ResponseGetParams{IncludeObfuscation: openai.Bool(false)}
		if after >= 0 {
			params.StartingAfter = openai.Int(after)
		}
		stream := b.client.Responses.GetStreaming(ctx, id, params, option.WithQuery("stream", "true"))
		for stream.Next() {
			rest = append(rest, stream.Current())
		}
		require.NoError(t, stream.Err())
		return rest
	}
	rest := resume(4)
	require.EqualValues(t, 5, rest[0].SequenceNumber)
	require.Equal(t, "response.completed", rest[len(rest)-1].Type)
	all := resume(-1)
	require.Len(t, all, len(rest)+len(whole))
	require.Equal(t, whole[2], all[2].RawJSON())
	require.Empty(t, resume(int64(len(all))))

	plain := b.respond(t, request(`{"say":"ok"}`))
	stream := b.client.Responses.GetStreaming(ctx, plain.ID, responses.ResponseGetParams{}, option.WithQuery("stream", "true"))
	require.False(t, stream.Next())
	requireRefusal(t, stream.Err(), 400, "stream", "invalid_request_error",
		"This response cannot be streamed because it was not created with stream=true or the stream TTL has expired.")
}

func TestResponseWebhooks(t *testing.T) {
	t.Parallel()
	r := receive(t)
	b := start(t, simulator.Config{})
	endpoint, err := b.client.Webhooks.New(testContext(t), webhooks.WebhookNewParams{
		Name: "team", URL: r.url,
		EventTypes: []string{"response.completed", "response.failed", "response.incomplete", "response.cancelled"},
	})
	require.NoError(t, err)
	b.respond(t, request(`{"say":"not in the background"}`))
	want := make(map[string]string)
	for kind, input := range map[string]string{
		"response.completed":  `{"say":"ok"}`,
		"response.failed":     `{"say":"","fail":"server_error"}`,
		"response.incomplete": `{"say":"","incomplete":"content_filter"}`,
		"response.cancelled":  `{"rounds":[[{"name":"f","after_ms":60000}]]}`,
	} {
		made := b.respond(t, inBackground(input, plainTool("f")))
		want[kind] = made.ID
		if kind == "response.cancelled" {
			_, err := b.client.Responses.Cancel(testContext(t), made.ID)
			require.NoError(t, err)
		}
	}
	bodies, headers := r.wait(t, 4)
	verifier := openai.NewClient(option.WithAPIKey("k"), option.WithWebhookSecret(endpoint.SigningSecret))
	got := make(map[string]string)
	for i := range bodies {
		event, err := verifier.Webhooks.Unwrap(bodies[i], headers[i])
		require.NoError(t, err)
		got[event.Type] = event.Data.ID
	}
	require.Equal(t, want, got)
}

func TestConversations(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	conv, err := b.client.Conversations.New(ctx, conversations.ConversationNewParams{
		Metadata: shared.Metadata{"team": "a"}, Items: request(`[{"role":"developer","content":"Be brief."}]`).Input.OfInputItemList,
	})
	require.NoError(t, err)
	params := request(`{"rounds":[[{"name":"f"}]],"say":"ok"}`, plainTool("f"))
	params.Conversation.OfString = openai.String(conv.ID)
	made := b.respond(t, params)
	require.Equal(t, conv.ID, made.Conversation.ID)
	params.Input = request("hello").Input
	_, err = b.client.Responses.New(ctx, params)
	requireRefusal(t, err, 400, "input", "", "No tool output found for function call "+made.Output[1].CallID+".")
	params.Input = request(answered(made, weatherTools)).Input
	require.Equal(t, "ok", b.respond(t, params).OutputText())
	items, err := b.client.Conversations.Items.List(ctx, conv.ID, conversations.ItemListParams{Order: "asc"})
	require.NoError(t, err)
	var kinds []string
	for _, it := range items.Data {
		kinds = append(kinds, it.Type)
	}
	require.Equal(t, []string{"message", "message", "reasoning", "function_call", "function_call_output", "message"}, kinds)

	params.Input = request(`{"rounds":[[{"name":"f","after_ms":60000}]]}`).Input
	params.Background = openai.Bool(true)
	busy := b.respond(t, params)
	params.Input = request("hello").Input
	_, err = b.client.Responses.New(ctx, params)
	requireRefusal(t, err, 400, "", "conversation_locked", "")
	_, err = b.client.Responses.Cancel(ctx, busy.ID)
	require.NoError(t, err)
	b.respond(t, params)

	_, err = b.client.Conversations.Delete(ctx, conv.ID)
	require.NoError(t, err)
	_, err = b.client.Responses.New(ctx, params)
	requireRefusal(t, err, 404, "", "", "Conversation with id '"+conv.ID+"' not found.")
}

func TestResponseFaults(t *testing.T) {
	t.Parallel()
	for kind, status := range map[simulator.FaultKind]int{
		simulator.FaultRateLimited: 429, simulator.FaultInternalError: 500, simulator.FaultUnavailable: 503, simulator.FaultBadGateway: 502,
	} {
		b := start(t, simulator.Config{Faults: once(kind, simulator.EndpointResponseCreate)})
		_, err := b.client.Responses.New(testContext(t), request(`{"say":"ok"}`))
		var apiErr *openai.Error
		require.ErrorAs(t, err, &apiErr)
		require.Equal(t, status, apiErr.StatusCode)
		require.Zero(t, b.sim.Stats().Responses)
		b.respond(t, request(`{"say":"ok"}`))
	}
	b := start(t, simulator.Config{Faults: simulator.Faults{Rules: []simulator.FaultRule{
		{Kind: simulator.FaultResponseLost, Endpoint: simulator.EndpointResponseCreate, Next: 2},
		{Kind: simulator.FaultStreamCut, Endpoint: simulator.EndpointResponseStream, Skip: 6, Next: 1},
		{Kind: simulator.FaultStreamError, Endpoint: simulator.EndpointResponseStream, Next: 1},
	}}})
	_, err := b.client.Responses.New(testContext(t), request(`{"say":"ok"}`))
	require.Error(t, err)
	lost := b.client.Responses.NewStreaming(testContext(t), request(`{"say":"ok"}`))
	require.False(t, lost.Next())
	require.Error(t, lost.Err())
	infos := b.sim.Responses()
	require.Len(t, infos, 2, "both responses were made")
	for _, info := range infos {
		require.Equal(t, "completed", info.Status)
	}
}

func TestResponseStreamFaults(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{Faults: simulator.Faults{Rules: []simulator.FaultRule{
		{Kind: simulator.FaultStreamCut, Endpoint: simulator.EndpointResponseStream, Skip: 3, Next: 1},
		{Kind: simulator.FaultStreamError, Endpoint: simulator.EndpointResponseStream, Skip: 3, Next: 1},
	}}})
	stream := b.client.Responses.NewStreaming(testContext(t), request(`{"say":"ok"}`))
	require.Len(t, responseEventTypes(stream), 3)
	require.Error(t, stream.Err(), "cut in the middle of a frame")
	stream = b.client.Responses.NewStreaming(testContext(t), request(`{"say":"ok"}`))
	types := responseEventTypes(stream)
	require.Equal(t, "error", types[len(types)-1])
	require.Equal(t, "server_error", stream.Current().Code)
	require.EqualValues(t, 2, b.sim.Stats().ResponsesByStatus["completed"])
}

func TestIdempotencyIsASwitch(t *testing.T) {
	t.Parallel()
	for on, want := range map[bool]int64{false: 2, true: 1} {
		b := start(t, with(func(sw *simulator.Switches) { sw.ResponseIdempotency = on }))
		var ids []string
		for range 2 {
			made, err := b.client.Responses.New(testContext(t), request(`{"say":"ok"}`), option.WithHeader("Idempotency-Key", "k"))
			require.NoError(t, err)
			ids = append(ids, made.ID)
		}
		require.Equal(t, on, ids[0] == ids[1])
		require.Equal(t, want, b.sim.Stats().Responses)
	}
}

func TestResponsesExpire(t *testing.T) {
	t.Parallel()
	b := start(t, with(func(sw *simulator.Switches) { sw.ResponseRetention = time.Millisecond }))
	made := b.respond(t, request(`{"say":"ok"}`))
	require.Eventually(t, func() bool {
		_, err := b.client.Responses.Get(testContext(t), made.ID, responses.ResponseGetParams{})
		return err != nil
	}, 10*time.Second, time.Millisecond)
	_, err := b.client.Responses.New(testContext(t), following(made, "hi"))
	requireRefusal(t, err, 400, "previous_response_id", "previous_response_not_found", "")
}
