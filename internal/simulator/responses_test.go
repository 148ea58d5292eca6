package simulator_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

// The tools of the assistant that knows the weather, calculates, and knows the time.
const (
	weatherTool = `{"type":"function","name":"get_weather","description":"查询指定城市的当日天气。","strict":true,"parameters":` +
		`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}`
	calculateTool = `{"type":"function","name":"calculate","description":"四则运算计算器。","parameters":{"type":"object",` +
		`"properties":{"a":{"type":"number"},"b":{"type":"number"},"op":{"type":"string","enum":["add","sub","mul","div"]}},` +
		`"required":["a","b","op"],"additionalProperties":false}}`
	timeTool = `{"type":"function","name":"get_time","parameters":{"type":"object","properties":{},"required":[],"additionalProperties":false}}`
)

func plainTool(name string) string {
	return `{"type":"function","name":"` + name + `","parameters":{"type":"object","properties":{}}}`
}

// raw is a parameter of the official client, given as JSON.
func raw[T param.ParamStruct, P param.InferPtr[T]](value string) T {
	return param.Override[T, P](json.RawMessage(value))
}

// request is a POST /responses for a text, or for items in JSON.
func request(input string, tools ...string) responses.ResponseNewParams {
	params := responses.ResponseNewParams{Model: "gpt-6-astra"}
	if strings.HasPrefix(input, "[") {
		params.Input.OfInputItemList = []responses.ResponseInputItemUnionParam{}
		var items []json.RawMessage
		if err := json.Unmarshal([]byte(input), &items); err != nil {
			panic(err)
		}
		for _, it := range items {
			params.Input.OfInputItemList = append(params.Input.OfInputItemList, raw[responses.ResponseInputItemUnionParam](string(it)))
		}
	} else {
		params.Input.OfString = openai.String(input)
	}
	for _, tool := range tools {
		params.Tools = append(params.Tools, raw[responses.ToolUnionParam](tool))
	}
	return params
}

// following is the request that answers the calls of a response, with the same tools.
func following(last *responses.Response, outputs string, tools ...string) responses.ResponseNewParams {
	params := request(outputs, tools...)
	params.PreviousResponseID = openai.String(last.ID)
	return params
}

func functionOutput(callID, output string) string {
	quoted, err := json.Marshal(output)
	if err != nil {
		panic(err)
	}
	return `{"type":"function_call_output","call_id":"` + callID + `","output":` + string(quoted) + `}`
}

// answered are the outputs for all function calls of a response, as items in JSON.
func answered(last *responses.Response, handler func(name, arguments string) string) string {
	var items []string
	for _, it := range last.Output {
		if it.Type == "function_call" {
			items = append(items, functionOutput(it.CallID, handler(it.Name, it.Arguments.OfString)))
		}
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (b *bench) respond(t *testing.T, params responses.ResponseNewParams) *responses.Response {
	t.Helper()
	made, err := b.client.Responses.New(testContext(t), params)
	if refused := (*openai.Error)(nil); errors.As(err, &refused) {
		require.NoError(t, err, refused.Message)
	}
	require.NoError(t, err)
	return made
}

// callsOf are the calls of a response, each as "name arguments".
func callsOf(r *responses.Response) (calls []string) {
	for _, it := range r.Output {
		if it.Type == "function_call" {
			calls = append(calls, it.Name+" "+it.Arguments.OfString)
		}
	}
	return calls
}

func requireRefusal(t *testing.T, err error, status int, param, code, message string) {
	t.Helper()
	requireAPIError(t, err, status, code, message)
	var apiErr *openai.Error
	require.ErrorAs(t, err, &apiErr)
	require.Equal(t, param, apiErr.Param)
	require.Equal(t, "invalid_request_error", apiErr.Type)
}

func TestAssistantInThreeRounds(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	tools := []string{weatherTool, calculateTool, timeTool}
	for _, tc := range []struct {
		question, answer string
		rounds           [][]string
	}{
		{
			"北京和上海今天各是什么天气?两地温差多少度?", "北京今天晴、22 度,上海多云、25 度,两地温差 3 度。",
			[][]string{
				{`get_weather {"city":"北京"}`, `get_weather {"city":"上海"}`},
				{`calculate {"a":25,"b":22,"op":"sub"}`},
			},
		},
		{
			"北京和上海哪个更热?差几度?", "北京今天晴、22 度,上海多云、25 度,两地温差 3 度。",
			[][]string{
				{`get_weather {"city":"北京"}`, `get_weather {"city":"上海"}`},
				{`calculate {"a":25,"b":22,"op":"sub"}`},
			},
		},
		{
			"Which is hotter, Beijing or Shanghai, and by how many degrees?",
			"Beijing today: sunny, 22 degrees, Shanghai: cloudy, 25 degrees, a difference of 3 degrees.",
			[][]string{
				{`get_weather {"city":"Beijing"}`, `get_weather {"city":"Shanghai"}`},
				{`calculate {"a":25,"b":22,"op":"sub"}`},
			},
		},
		{"现在几点了?", "现在是 12:30。", [][]string{{`get_time {}`}}},
		{"这个点北京还适合晨跑吗?", "现在 12:30,北京今天晴、22 度。", [][]string{{`get_time {}`, `get_weather {"city":"北京"}`}}},
	} {
		t.Run(tc.question, func(t *testing.T) {
			t.Parallel()
			for _, state := range []string{"previous", "stateless", "conversation"} {
				var rounds [][]string
				params := request(`[{"role":"user","content":"`+tc.question+`"}]`, tools...)
				switch state {
				case "stateless":
					params.Store = openai.Bool(false)
				case "conversation":
					conv, err := b.client.Conversations.New(testContext(t), conversationParams())
					require.NoError(t, err)
					params.Conversation.OfString = openai.String(conv.ID)
				}
				r := b.respond(t, params)
				for calls := callsOf(r); len(calls) > 0; calls = callsOf(r) {
					rounds = append(rounds, calls)
					next := request(answered(r, weatherTools), tools...)
					switch state {
					case "previous":
						params.PreviousResponseID = openai.String(r.ID)
					case "stateless":
						kept := params.Input.OfInputItemList
						for _, it := range r.Output {
							kept = append(kept, raw[responses.ResponseInputItemUnionParam](it.RawJSON()))
						}
						next.Input.OfInputItemList = append(kept, next.Input.OfInputItemList...)
					}
					params.Input = next.Input
					r = b.respond(t, params)
				}
				require.Equal(t, tc.answer, r.OutputText(), state)
				require.Equal(t, tc.rounds, rounds, state)
			}
		})
	}
}

func TestToolChoice(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	all := []string{weatherTool, calculateTool, timeTool}
	question := "北京和上海今天各是什么天气?两地温差多少度?"
	for name, tc := range map[string]struct {
		question string
		choice   string
		want     []string
		text     string
	}{
		"auto":     {question, `"auto"`, []string{`get_weather {"city":"北京"}`, `get_weather {"city":"上海"}`}, ""},
		"required": {"你好", `"required"`, []string{`get_weather {"city":"北京"}`}, ""},
		"none":     {question, `"none"`, nil, "没有可用的工具,我无法回答。"},
		"pinned to get_weather, asked for the time": {
			"现在几点了?", `{"type":"function","name":"get_weather"}`, []string{`get_weather {"city":"北京"}`}, "",
		},
		"allowed, and wanted": {
			question, `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"get_weather"}]}`,
			[]string{`get_weather {"city":"北京"}`, `get_weather {"city":"上海"}`},
			"",
		},
		"allowed, not wanted": {
			question, `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"calculate"}]}`, nil, "没有可用的工具,我无法回答。",
		},
		"allowed and required": {
			question, `{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"calculate"}]}`,
			[]string{`calculate {"a":1,"b":1,"op":"add"}`},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params := request(tc.question, all...)
			params.ToolChoice = raw[responses.ResponseNewParamsToolChoiceUnion](tc.choice)
			r := b.respond(t, params)
			require.Equal(t, tc.want, callsOf(r))
			require.Equal(t, tc.text, r.OutputText())
		})
	}
	t.Run("one call a response", func(t *testing.T) {
		t.Parallel()
		params := request(question, all...)
		params.ParallelToolCalls = openai.Bool(false)
		var rounds [][]string
		r := b.respond(t, params)
		for calls := callsOf(r); len(calls) > 0; calls = callsOf(r) {
			rounds = append(rounds, calls)
			params.PreviousResponseID = openai.String(r.ID)
			params.Input = request(answered(r, weatherTools)).Input
			r = b.respond(t, params)
		}
		require.Equal(t, [][]string{
			{`get_weather {"city":"北京"}`}, {`get_weather {"city":"上海"}`}, {`calculate {"a":25,"b":22,"op":"sub"}`},
		}, rounds)
		require.Equal(t, "北京今天晴、22 度,上海多云、25 度,两地温差 3 度。", r.OutputText())
	})
	t.Run("a pinned choice that is lifted", func(t *testing.T) {
		t.Parallel()
		params := request("现在几点了?", all...)
		params.ToolChoice = raw[responses.ResponseNewParamsToolChoiceUnion](`{"type":"function","name":"get_weather"}`)
		r := b.respond(t, params)
		r = b.respond(t, following(r, answered(r, weatherTools), all...))
		require.Equal(t, []string{`get_time {}`}, callsOf(r))
		r = b.respond(t, following(r, answered(r, weatherTools), all...))
		require.Equal(t, "现在是 12:30。", r.OutputText())
	})
}

func responseEventTypes(stream *ssestream.Stream[responses.ResponseStreamEventUnion]) (types []string) {
	for stream.Next() {
		if kind := stream.Current().Type; len(types) == 0 || types[len(types)-1] != kind {
			types = append(types, kind)
		}
	}
	return types
}

func TestResponseStream(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	text := `{"rounds":[[{"name":"f","arguments":{"city":"北京","n":9007199254740993}}]],"say":"all done"}`
	stream := b.client.Responses.NewStreaming(testContext(t), request(text, plainTool("f")))
	var (
		types []string
		delta strings.Builder
		last  *responses.Response
		count int
	)
	for stream.Next() {
		ev := stream.Current()
		require.EqualValues(t, count, ev.SequenceNumber)
		count++
		if len(types) == 0 || types[len(types)-1] != ev.Type {
			types = append(types, ev.Type)
		}
		switch ev := ev.AsAny().(type) {
		case responses.ResponseOutputItemAddedEvent:
			if ev.Item.Type == "function_call" {
				require.Equal(t, "f", ev.Item.Name)
				require.Empty(t, ev.Item.Arguments.OfString)
			}
		case responses.ResponseFunctionCallArgumentsDeltaEvent:
			delta.WriteString(ev.Delta)
		case responses.ResponseFunctionCallArgumentsDoneEvent:
			require.Equal(t, delta.String(), ev.Arguments)
		case responses.ResponseCompletedEvent:
			last = &ev.Response
		}
	}
	require.NoError(t, stream.Err())
	require.Equal(t, []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.output_item.done",
		"response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.done",
		"response.output_item.done", "response.completed",
	}, types)
	require.Greater(t, count, 10, "the arguments come in pieces")
	require.Equal(t, []string{`f {"city":"北京","n":9007199254740993}`}, callsOf(last))

	next := b.client.Responses.NewStreaming(testContext(t), following(last, answered(last, weatherTools), plainTool("f")))
	require.Equal(t, []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.done", "response.content_part.done", "response.output_item.done",
		"response.completed",
	}, responseEventTypes(next))
	require.NoError(t, next.Err())
}

func TestLinesOfAToolArriveInAStream(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	body := `{"model":"m","input":"{\"say\":\"hello\"}","stream":true,"tools":[{"type":"function","name":"f","parameters":{` +
		"\n\"type\": \"object\",\r\n\"properties\": {}\n}}]}"
	stream := b.client.Responses.NewStreaming(testContext(t), responses.ResponseNewParams{}, option.WithRequestBody("application/json", []byte(body)))
	types := responseEventTypes(stream)
	require.NoError(t, stream.Err())
	require.Equal(t, "response.completed", types[len(types)-1])
}

func TestResponseRetrieveAndDelete(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	params := request(`{"rounds":[[{"name":"f"}]],"say":"ok"}`, plainTool("f"))
	params.Metadata = shared.Metadata{"run": "run_1", "round": "1"}
	params.Instructions = openai.String("Be brief.")
	made := b.respond(t, params)
	got, err := b.client.Responses.Get(ctx, made.ID, responses.ResponseGetParams{})
	require.NoError(t, err)
	require.Equal(t, made.RawJSON(), got.RawJSON())
	require.Equal(t, shared.Metadata{"run": "run_1", "round": "1"}, got.Metadata)
	require.Equal(t, responses.ResponseStatusCompleted, got.Status)
	require.Equal(t, "Be brief.", got.Instructions.OfString)
	require.True(t, got.Tools[0].AsFunction().Strict)

	next := b.respond(t, following(made, answered(made, weatherTools), plainTool("f")))
	require.Equal(t, made.ID, next.PreviousResponseID)
	require.Empty(t, next.Instructions.OfString, "instructions are not carried over")
	items, err := b.client.Responses.InputItems.List(ctx, next.ID, responses.InputItemListParams{})
	require.NoError(t, err)
	require.Len(t, items.Data, 1)
	require.Equal(t, "function_call_output", items.Data[0].Type)
	require.Equal(t, "unexpected", items.Data[0].AsFunctionCallOutput().Output.OfString)

	require.NoError(t, b.client.Responses.Delete(ctx, made.ID))
	_, err = b.client.Responses.Get(ctx, made.ID, responses.ResponseGetParams{})
	requireRefusal(t, err, 404, "", "", "Response with id '"+made.ID+"' not found.")
	_, err = b.client.Responses.New(ctx, following(made, "hi"))
	requireRefusal(t, err, 400, "previous_response_id", "previous_response_not_found",
		"Previous response with id '"+made.ID+"' not found.")

	params.Store = openai.Bool(false)
	unstored := b.respond(t, params)
	_, err = b.client.Responses.Get(ctx, unstored.ID, responses.ResponseGetParams{})
	requireRefusal(t, err, 404, "", "", "Response with id '"+unstored.ID+"' not found.")
	_, err = b.client.Responses.New(ctx, following(unstored, answered(unstored, weatherTools)))
	requireRefusal(t, err, 400, "previous_response_id", "previous_response_not_found", "")
}
