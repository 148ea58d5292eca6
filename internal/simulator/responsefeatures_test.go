package simulator_test

import (
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

func kindsOf(r *responses.Response) (kinds []string) {
	for _, it := range r.Output {
		kinds = append(kinds, it.Type)
	}
	return kinds
}

// carried are the items of a request and the output of its response, as the input of the next one.
func carried(params responses.ResponseNewParams, last *responses.Response, outputs string) []responses.ResponseInputItemUnionParam {
	items := params.Input.OfInputItemList
	for _, it := range last.Output {
		items = append(items, raw[responses.ResponseInputItemUnionParam](it.RawJSON()))
	}
	return append(items, request(outputs).Input.OfInputItemList...)
}

func TestCustomToolsNamespacesAndCallers(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	tools := []string{
		`{"type":"custom","name":"run_sql","description":"Runs a query."}`,
		`{"type":"namespace","name":"crm","description":"Customers.","tools":[` + plainTool("lookup") + `]}`,
		plainTool("f"),
	}
	made := b.respond(t, request(`{"rounds":[[{"name":"run_sql","input":"SELECT 1;\n-- 北京"},{"name":"lookup","namespace":"crm"},`+
		`{"name":"f","caller_id":"call_program"}]],"say":"ok"}`, tools...))
	require.Equal(t, []string{"reasoning", "custom_tool_call", "function_call", "function_call"}, kindsOf(made))
	custom := made.Output[1].AsCustomToolCall()
	require.Equal(t, "SELECT 1;\n-- 北京", custom.Input)
	require.Equal(t, "crm", made.Output[2].AsFunctionCall().Namespace)
	program := made.Output[3].AsFunctionCall()
	require.Equal(t, "call_program", program.Caller.AsProgram().CallerID)

	outputs := `[{"type":"custom_tool_call_output","call_id":"` + custom.CallID + `","output":"1 row"},` +
		functionOutput(made.Output[2].CallID, "a") + `,{"type":"function_call_output","call_id":"` + program.CallID +
		`","output":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"https://x/y.png"},` +
		`{"type":"input_file","file_id":"file_1"}],"caller":{"type":"program","caller_id":"call_program"}}]`
	require.Equal(t, "ok", b.respond(t, following(made, outputs, tools...)).OutputText())
	received := b.sim.ReceivedOutputs()
	require.Equal(t, "crm", received[1].Namespace)
	require.JSONEq(t, `{"type":"program","caller_id":"call_program"}`, string(received[2].Contents[0].Caller))

	stream := b.client.Responses.NewStreaming(testContext(t), request(`{"rounds":[[{"name":"run_sql","input":"SELECT 1"}]]}`, tools...))
	require.Equal(t, []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.output_item.done",
		"response.output_item.added", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
		"response.output_item.done", "response.completed",
	}, responseEventTypes(stream))
}

func TestScriptOfUnknownFunction(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	_, err := b.client.Responses.New(testContext(t), request(`{"rounds":[[{"name":"g"}]]}`, plainTool("f")))
	requireAPIError(t, err, 400, "invalid_request_error",
		`The script calls "g", which is not in tools, or deferred without a tool_search.`)
}

func TestAsyncCalls(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	slow := strings.Replace(plainTool("slow"), `"name"`, `"async":true,"name"`, 1)
	tools := []string{plainTool("f"), slow}
	made := b.respond(t, request(`{"rounds":[[{"name":"slow","call_id":"call_slow"},{"name":"f"}],[{"name":"f"}]],"say":"ok"}`, tools...))
	require.True(t, made.Output[1].AsFunctionCall().Async)
	second := b.respond(t, following(made, "["+functionOutput(made.Output[2].CallID, "1")+"]", tools...))
	require.Equal(t, []string{"f {}"}, callsOf(second), "the asynchronous call is not waited for")
	third := b.respond(t, following(second, answered(second, weatherTools), tools...))
	require.Equal(t, "ok", third.OutputText())
	late := b.respond(t, following(third, "["+functionOutput("call_slow", "done")+"]", tools...))
	require.Equal(t, "ok", late.OutputText())

	alone := b.respond(t, request(`{"rounds":[[{"name":"slow"}]],"say":"meanwhile"}`, tools...))
	require.Equal(t, []string{"reasoning", "function_call", "message"}, kindsOf(alone), "the model goes on at once")
}

func TestReasoningBelongsToItsCall(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	params := request(`[{"role":"user","content":"{\"rounds\":[[{\"name\":\"f\"}]],\"say\":\"ok\"}"}]`, plainTool("f"))
	params.Store = openai.Bool(false)
	made := b.respond(t, params)
	require.Equal(t, []string{"reasoning", "function_call"}, kindsOf(made))
	reasoning, call := made.Output[0].AsReasoning(), made.Output[1].AsFunctionCall()
	require.NotEmpty(t, reasoning.EncryptedContent)
	whole := carried(params, made, answered(made, weatherTools))
	without := func(change func(items []responses.ResponseInputItemUnionParam) []responses.ResponseInputItemUnionParam) error {
		next := params
		next.Input.OfInputItemList = change(append([]responses.ResponseInputItemUnionParam(nil), whole...))
		_, err := b.client.Responses.New(ctx, next)
		return err
	}
	type items = []responses.ResponseInputItemUnionParam
	require.NoError(t, without(func(all items) items { return all }))
	err := without(func(all items) items { return append(all[:1], all[2:]...) })
	requireRefusal(t, err, 400, "input", "", "Item '"+call.ID+"' of type 'function_call' was provided without its required 'reasoning' "+
		"item: '"+reasoning.ID+"'.")
	err = without(func(all items) items { return all[:2] })
	requireRefusal(t, err, 400, "input", "", "Item '"+reasoning.ID+"' of type 'reasoning' was provided without its required following item.")
	bare := raw[responses.ResponseInputItemUnionParam](`{"type":"reasoning","id":"` + reasoning.ID + `","summary":[]}`)
	err = without(func(all items) items { all[1] = bare; return all })
	requireRefusal(t, err, 404, "input", "", "Item with id '"+reasoning.ID+"' not found. Items are not persisted when `store` is set to "+
		"false. Try again with `store` set to true, or remove this item from your input.")
	forged := raw[responses.ResponseInputItemUnionParam](`{"type":"reasoning","id":"` + reasoning.ID + `","summary":[],"encrypted_content":"x"}`)
	err = without(func(all items) items { all[1] = forged; return all })
	requireRefusal(t, err, 400, "", "invalid_encrypted_content", "")

	params.Reasoning.Effort = "none"
	require.Equal(t, []string{"function_call"}, kindsOf(b.respond(t, params)))
	params.Store = openai.Bool(true)
	params.Reasoning.Effort = ""
	stored := b.respond(t, params)
	next := params
	next.Input.OfInputItemList = append(params.Input.OfInputItemList,
		raw[responses.ResponseInputItemUnionParam](`{"type":"item_reference","id":"`+stored.Output[0].ID+`"}`),
		raw[responses.ResponseInputItemUnionParam](`{"type":"item_reference","id":"`+stored.Output[1].ID+`"}`),
		raw[responses.ResponseInputItemUnionParam](functionOutput(stored.Output[1].CallID, "1")))
	require.Equal(t, "ok", b.respond(t, next).OutputText(), "stored items can be referred to")
}

func TestToolSearch(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	deferred := strings.Replace(weatherTool, `"name"`, `"defer_loading":true,"name"`, 1)
	t.Run("by the client", func(t *testing.T) {
		t.Parallel()
		tools := []string{`{"type":"tool_search","execution":"client"}`}
		made := b.respond(t, request("北京今天多少度?", tools...))
		require.Equal(t, []string{"reasoning", "tool_search_call"}, kindsOf(made))
		search := made.Output[1].AsToolSearchCall()
		require.Equal(t, "client", string(search.Execution))
		require.JSONEq(t, `{"query":"get_weather"}`, made.Output[1].JSON.Arguments.Raw())
		_, err := b.client.Responses.New(testContext(t), following(made, "hello", tools...))
		requireRefusal(t, err, 400, "input", "", "No tool output found for tool search call "+search.CallID+".")
		found := func(tool string) string {
			return `[{"type":"tool_search_output","call_id":"` + search.CallID + `","execution":"client","status":"completed","tools":[` + tool + `]}]`
		}
		loaded := b.respond(t, following(made, found(deferred), tools...))
		require.Equal(t, []string{`get_weather {"city":"北京"}`}, callsOf(loaded))
		require.Equal(t, "北京今天晴、22 度。", b.respond(t, following(loaded, answered(loaded, weatherTools), tools...)).OutputText())
		require.Empty(t, callsOf(b.respond(t, following(made, found(""), tools...))), "the model does not search twice")
	})
	t.Run("by the service", func(t *testing.T) {
		t.Parallel()
		made := b.respond(t, request("北京今天多少度?", deferred, `{"type":"tool_search"}`))
		require.Equal(t, []string{"reasoning", "tool_search_call", "tool_search_output", "function_call"}, kindsOf(made))
		require.Equal(t, "get_weather", made.Output[2].AsToolSearchOutput().Tools[0].Name)
		next := b.respond(t, following(made, answered(made, weatherTools), deferred, `{"type":"tool_search"}`))
		require.Equal(t, "北京今天晴、22 度。", next.OutputText())
	})
	t.Run("scripted", func(t *testing.T) {
		t.Parallel()
		search := `{"type":"tool_search","execution":"client","parameters":{"type":"object","properties":{"goal":{"type":"string"}}}}`
		made := b.respond(t, request(`{"rounds":[[{"type":"tool_search","arguments":{"goal":"look up"}}],[{"name":"f"}]],"say":"ok"}`, search))
		require.JSONEq(t, `{"goal":"look up"}`, made.Output[1].JSON.Arguments.Raw())
	})
}

func TestOtherEnds(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	last := func(input string) (types []string, end *responses.Response) {
		stream := b.client.Responses.NewStreaming(testContext(t), request(input, plainTool("f")))
		for stream.Next() {
			event := stream.Current()
			types, end = append(types, event.Type), &event.Response
		}
		require.NoError(t, stream.Err())
		return types, end
	}
	types, end := last(`{"say":"","refuse":"I cannot help with that."}`)
	require.Equal(t, "I cannot help with that.", end.Output[0].AsMessage().Content[0].AsRefusal().Refusal)
	require.Contains(t, types, "response.refusal.delta")
	require.Contains(t, types, "response.refusal.done")

	types, end = last(`{"say":"half an ans","incomplete":"max_output_tokens"}`)
	require.Equal(t, "response.incomplete", types[len(types)-1])
	require.Equal(t, responses.ResponseStatusIncomplete, end.Status)
	require.Equal(t, "max_output_tokens", end.IncompleteDetails.Reason)
	require.Equal(t, "half an ans", end.OutputText())

	_, end = last(`{"rounds":[[{"name":"f"},{"name":"f","arguments":{"city":"Beijing"},"incomplete":true}]],"say":"never"}`)
	require.Equal(t, responses.ResponseStatusIncomplete, end.Status)
	require.Equal(t, responses.ResponseFunctionToolCallStatusCompleted, end.Output[1].AsFunctionCall().Status)
	require.Equal(t, responses.ResponseFunctionToolCallStatusIncomplete, end.Output[2].AsFunctionCall().Status)
	require.Equal(t, `{"city":"`, end.Output[2].Arguments.OfString)

	for _, code := range []string{"server_error", "rate_limit_exceeded"} {
		types, end = last(`{"say":"","fail":"` + code + `"}`)
		require.Equal(t, []string{"response.created", "response.in_progress", "response.failed"}, types)
		require.Equal(t, responses.ResponseStatusFailed, end.Status)
		require.Equal(t, code, string(end.Error.Code))
		_, err := b.client.Responses.New(testContext(t), following(end, "again"))
		requireRefusal(t, err, 400, "previous_response_id", "", "")
	}
	require.Equal(t, map[string]int64{"completed": 1, "incomplete": 2, "failed": 2}, b.sim.Stats().ResponsesByStatus)
}

func TestErrorsInOutputsReachTheModel(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	made := b.respond(t, request("北京今天多少度?", weatherTool))
	failed := func(string, string) string { return `{"error":"no such city"}` }
	require.Equal(t, "北京的天气查询失败(no such city)。", b.respond(t, following(made, answered(made, failed), weatherTool)).OutputText())
}
