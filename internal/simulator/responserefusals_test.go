package simulator_test

import (
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

func conversationParams(items ...responses.ResponseInputItemUnionParam) conversations.ConversationNewParams {
	return conversations.ConversationNewParams{Items: items}
}

func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	tool := func(definition string) string { return `{"model":"m","input":"hi","tools":[` + definition + `]}` }
	for name, tc := range map[string]struct{ body, param, code, message string }{
		"no model":          {`{"input":"hi"}`, "model", "missing_required_parameter", "Missing required parameter: 'model'."},
		"no input":          {`{"model":"m"}`, "input", "missing_required_parameter", "Missing required parameter: 'input'."},
		"unknown parameter": {`{"model":"m","input":"hi","messages":[]}`, "messages", "unknown_parameter", "Unknown parameter: 'messages'."},
		"both states": {
			`{"model":"m","input":"hi","previous_response_id":"resp_1","conversation":"conv_1"}`, "", "mutually_exclusive_parameters",
			"Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or 'conversation'.",
		},
		"unknown previous": {
			`{"model":"m","input":"hi","previous_response_id":"resp_x"}`, "previous_response_id", "previous_response_not_found",
			"Previous response with id 'resp_x' not found.",
		},
		"no id of a response": {
			`{"model":"m","input":"hi","previous_response_id":"x"}`, "previous_response_id", "invalid_value",
			"Invalid 'previous_response_id': 'x'. Expected an ID that begins with 'resp'.",
		},
		"background without store": {
			`{"model":"m","input":"hi","background":true,"store":false}`, "background", "", "",
		},
		"tool of the older API": {
			tool(`{"type":"function","function":{"name":"f"}}`), "tools[0].name", "missing_required_parameter",
			"Missing required parameter: 'tools[0].name'.",
		},
		"tool without type": {tool(`{"name":"f"}`), "tools[0].type", "missing_required_parameter", "Missing required parameter: 'tools[0].type'."},
		"tool of no kind":   {tool(`{"type":"fun","name":"f"}`), "tools[0].type", "invalid_value", ""},
		"tool name": {
			tool(`{"type":"function","name":"get weather","parameters":null}`), "tools[0].name", "invalid_value",
			"Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
		},
		"long tool name": {
			tool(`{"type":"function","name":"` + strings.Repeat("n", 129) + `"}`), "tools[0].name", "string_above_max_length",
			"Invalid 'tools[0].name': string too long. Expected a string with maximum length 128, but got a string with length 129 instead.",
		},
		"parameters of no object": {
			tool(`{"type":"function","name":"f","parameters":{"type":"string"}}`), "tools[0].parameters", "invalid_function_parameters",
			`Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"', got 'type: "string"'.`,
		},
		"strict and open": {
			tool(`{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"o":{"type":"object",` +
				`"properties":{}}},"required":["o"],"additionalProperties":false}}`), "tools[0].parameters", "invalid_function_parameters",
			"Invalid schema for function 'f': In context=('properties', 'o'), 'additionalProperties' is required to be supplied and to be false.",
		},
		"strict and optional": {
			tool(`{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}},` +
				`"required":[],"additionalProperties":false}}`), "tools[0].parameters", "invalid_function_parameters",
			"Invalid schema for function 'f': In context=(), 'required' is required to be supplied and to be an array including every " +
				"key in properties. Missing 'a'.",
		},
		"two tools of a name": {tool(plainTool("f") + "," + plainTool("f")), "tools", "invalid_value", ""},
		"choice of no mode": {
			`{"model":"m","input":"hi","tool_choice":"always"}`, "tool_choice", "invalid_value",
			"Invalid value: 'always'. Supported values are: 'none', 'auto', and 'required'.",
		},
		"choice without tools": {
			`{"model":"m","input":"hi","tool_choice":"required"}`, "tool_choice", "",
			"Tool choice 'required' must be specified with 'tools' parameter.",
		},
		"choice of no tool": {
			`{"model":"m","input":"hi","tools":[` + plainTool("f") + `],"tool_choice":{"type":"function","name":"g"}}`, "tool_choice", "",
			"Tool choice 'g' not found in 'tools' parameter.",
		},
		"allowed and no tool": {
			`{"model":"m","input":"hi","tools":[` + plainTool("f") + `],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[` +
				`{"type":"function","name":"g"}]}}`, "tool_choice", "", "Tool choice 'g' not found in 'tools' parameter.",
		},
		"item of no kind": {`{"model":"m","input":[{"type":"tool"}]}`, "input[0]", "invalid_value", ""},
		"output without call": {
			`{"model":"m","input":[{"type":"function_call_output","call_id":"call_x","output":"1"}]}`, "input", "",
			"No tool call found for function call output with call_id call_x.",
		},
		"custom output without call": {
			`{"model":"m","input":[{"type":"custom_tool_call_output","call_id":"call_x","output":"1"}]}`, "input", "",
			"No tool call found for custom tool call output with call_id call_x.",
		},
		"output without call_id": {
			`{"model":"m","input":[{"type":"function_call_output","output":"1"}]}`, "input[0].call_id", "missing_required_parameter",
			"Missing required parameter: 'input[0].call_id'.",
		},
		"empty call_id": {
			`{"model":"m","input":[{"type":"function_call_output","call_id":"","output":"1"}]}`, "input[0].call_id", "empty_string",
			"Invalid 'input[0].call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.",
		},
		"long call_id": {
			`{"model":"m","input":[{"type":"function_call_output","call_id":"` + strings.Repeat("c", 65) + `","output":"1"}]}`,
			"input[0].call_id", "string_above_max_length", "Invalid 'input[0].call_id': string too long. Expected a string with maximum " +
				"length 64, but got a string with length 65 instead.",
		},
		"no output": {
			`{"model":"m","input":[{"type":"function_call_output","call_id":"c"}]}`, "input[0].output", "missing_required_parameter", "",
		},
		"output of the Agents API": {
			`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":{"x":1}}]}`, "input[0].output", "invalid_type", "",
		},
		"output of a wrong part": {
			`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":[{"type":"text","text":"x"}]}]}`,
			"input[0].output[0]", "invalid_value", "Invalid value: 'text'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
		},
		"arguments of the Agents API": {
			`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":{}}]}`, "input[0].arguments", "invalid_type", "",
		},
		"call without output": {
			`{"model":"m","input":[{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}]}`, "input", "",
			"No tool output found for function call call_1.",
		},
		"metadata": {`{"model":"m","input":"hi","metadata":{"k":"` + strings.Repeat("v", 513) + `"}}`, "metadata.k", "string_above_max_length", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var made *responses.Response
			err := b.client.Post(testContext(t), "responses", nil, &made, option.WithRequestBody("application/json", []byte(tc.body)))
			requireRefusal(t, err, 400, tc.param, tc.code, tc.message)
		})
	}
}

func TestCallsAndOutputsBelongTogether(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	made := b.respond(t, request(`{"rounds":[[{"name":"f","call_id":"call_a"},{"name":"f","call_id":"call_b"}]],"say":"ok"}`, plainTool("f")))
	for _, tc := range map[string]struct{ input, message string }{
		"one unanswered": {"[" + functionOutput("call_a", "1") + "]", "No tool output found for function call call_b."},
		"a message only": {"hello", "No tool output found for function call call_a."},
		"one too many": {
			"[" + functionOutput("call_a", "1") + "," + functionOutput("call_b", "2") + "," + functionOutput("call_c", "3") + "]",
			"No tool call found for function call output with call_id call_c.",
		},
		"of another kind": {
			`[{"type":"custom_tool_call_output","call_id":"call_a","output":"1"}]`,
			"No tool call found for custom tool call output with call_id call_a.",
		},
	} {
		_, err := b.client.Responses.New(ctx, following(made, tc.input, plainTool("f")))
		requireRefusal(t, err, 400, "input", "", tc.message)
	}
	both := "[" + functionOutput("call_a", "1") + "," + functionOutput("call_b", "2") + "]"
	next := b.respond(t, following(made, both, plainTool("f")))
	require.Equal(t, "ok", next.OutputText())
	again := b.respond(t, following(made, both, plainTool("f")))
	require.NotEqual(t, next.ID, again.ID, "a repeated request makes a second response")

	outputs := b.sim.ReceivedOutputs()
	require.Len(t, outputs, 3)
	require.Equal(t, made.ID, outputs[0].ResponseID)
	require.Equal(t, "f", outputs[0].Name)
	require.Len(t, outputs[0].Contents, 1)
	require.Equal(t, `"1"`, string(outputs[0].Contents[0].Output))
	require.Equal(t, 5, outputs[0].Contents[0].Times)
	_, err := b.client.Responses.New(ctx, following(made, "["+functionOutput("call_a", "other")+"]", plainTool("f")))
	require.Error(t, err)
	require.EqualValues(t, 1, b.sim.Stats().OutputsContradicted)
	require.EqualValues(t, 3, b.sim.Stats().Responses)
	require.Equal(t, []string{"call_a", "call_b"}, b.sim.Responses()[2].Answered)
}
