package runs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

type registry []call.Function

func (r registry) Function(name string) (call.Function, bool) {
	for _, f := range r {
		if f.Name == name {
			return f, true
		}
	}
	return call.Function{}, false
}

func (r registry) Functions() []call.Function { return r }

func raws(items ...string) (list []json.RawMessage) {
	for _, i := range items {
		list = append(list, json.RawMessage(i))
	}
	return list
}

func TestRequestsOfARound(t *testing.T) {
	t.Parallel()
	later := material{
		run: "run_1", round: 2, previous: "resp_1", tools: json.RawMessage(`[{"type":"web_search"}]`),
		earlier: raws(`{"type":"reasoning", "n":1e400}`, `{"type":"function_call"}`), outputs: raws(`{"type":"function_call_output"}`),
	}
	first := later
	first.round = 1
	meta := func(round string) string {
		return `"metadata":{"callfan_run":"run_1","callfan_round":"` + round + `"}`
	}
	for name, tc := range map[string]struct {
		request string
		m       material
		want    string
	}{
		"first": {
			`{"model":"m","input":"北京 <&>","instructions":"be short","bounds":{"rounds":2},"x":9007199254740993}`, first,
			`{"model":"m","instructions":"be short","x":9007199254740993,"input":"北京 <&>","tools":[{"type":"web_search"}],` + meta("1") + `,"stream":true,"background":true}`,
		},
		"later": {
			`{"model":"m","input":"q","instructions":"be short","tool_choice":"required"}`, later,
			`{"model":"m","instructions":"be short","input":[{"type":"function_call_output"}],"tools":[{"type":"web_search"}],"previous_response_id":"resp_1",` + meta("2") + `,"stream":true,"background":true}`,
		},
		"later without store": {
			`{"model":"m","store":false,"input":"q","previous_response_id":"resp_0"}`, later,
			`{"model":"m","store":false,"input":[{"role":"user","content":"q"},{"type":"reasoning", "n":1e400},{"type":"function_call"},{"type":"function_call_output"}],"tools":[{"type":"web_search"}],"previous_response_id":"resp_0","include":["reasoning.encrypted_content"],` + meta("2") + `,"stream":true}`,
		},
		"later without store, input of items": {
			`{"model":"m","store":false,"stream":false,"include":["x"],"input":[{"a":1}]}`, later,
			`{"model":"m","store":false,"input":[{"a":1},{"type":"reasoning", "n":1e400},{"type":"function_call"},{"type":"function_call_output"}],"tools":[{"type":"web_search"}],"include":["x","reasoning.encrypted_content"],` + meta("2") + `}`,
		},
		"conversation": {
			`{"model":"m","conversation":{"id":"conv_1"},"background":false}`, later,
			`{"model":"m","conversation":{"id":"conv_1"},"input":[{"type":"function_call_output"}],"tools":[{"type":"web_search"}],` + meta("2") + `,"stream":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := ParseRequest(json.RawMessage(tc.request))
			require.NoError(t, err)
			body, err := r.compose(tc.m)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(body))
			require.True(t, json.Valid(body) || strings.Contains(tc.want, "1e400"))
		})
	}
}

func TestAForcedChoiceIsRelaxed(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		``:           ``,
		`"auto"`:     `"auto"`,
		`"none"`:     `"none"`,
		`"required"`: ``,
		`{"type":"function","name":"get_weather"}`:                              ``,
		`{"type":"custom","name":"x"}`:                                          ``,
		`{"type":"allowed_tools","mode":"required","tools":[{"name":"x"}]}`:     `{"type":"allowed_tools","mode":"auto","tools":[{"name":"x"}]}`,
		`{"mode":"auto","type":"allowed_tools","tools":[ {"name":"x"} ],"a":1}`: `{"mode":"auto","type":"allowed_tools","tools":[ {"name":"x"} ],"a":1}`,
	} {
		got, err := relaxed(json.RawMessage(given))
		require.NoError(t, err)
		require.Equal(t, want, string(got), given)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                             "want a JSON object",
		`[]`:                           "want a JSON object",
		`{"input":"x"}`:                "model is missing",
		`{"model":"m"}`:                "input is missing",
		`{"model":"m","model":"n"}`:    `"model" appears twice`,
		`{"model":"m","input":"x"} {}`: "more than one JSON value",
		`{"model":1}`:                  "model:",
		`{"model":"m","input":"x","bounds":{"round":1}}`:                                "bounds:",
		`{"model":"m","input":"x","bounds":{"rounds":-1}}`:                              "rounds is -1",
		`{"model":"m","input":"x","bounds":{"time":"100h"}}`:                            "at most 72h",
		`{"model":"m","input":"x","store":false,"background":true}`:                     "background needs store",
		`{"model":"m","input":"x","conversation":"c","store":false,"background":false}`: "conversation needs store",
		`{"model":"m","input":"x","conversation":"c","previous_response_id":"r"}`:       "exclude each other",
		`{"model":"m","input":"x","tools":{}}`:                                          "tools:",
	} {
		_, err := ParseRequest(json.RawMessage(body))
		require.ErrorIs(t, err, ErrInvalidRequest, body)
		require.ErrorContains(t, err, want, body)
	}
}

func TestToolsComeFromTheRegistry(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`
	functions := registry{
		{Name: "crm.find", Description: "finds", Parameters: json.RawMessage(schema)},
		{Name: "crm.drop", Description: "drops"},
		{Name: "get_weather", Description: "the weather", Parameters: json.RawMessage(schema)},
	}
	weather := `{"type":"function","name":"get_weather","description":"the weather","parameters":` + schema + `,"strict":true}`
	for given, want := range map[string]string{
		`[]`:              `[]`,
		`["get_weather"]`: `[` + weather + `]`,
		`["crm.find","get_weather","crm.drop"]`: `[{"type":"namespace","name":"crm","description":"The functions of crm.","tools":[` +
			`{"type":"function","name":"find","description":"finds","parameters":` + schema + `,"strict":true},` +
			`{"type":"function","name":"drop","description":"drops","parameters":{"type":"object"},"strict":false}]},` + weather + `]`,
		`[{"type":"function","name":"get_weather","defer_loading":true,"strict":false}]`: `[{"type":"function","name":"get_weather","defer_loading":true,"strict":false,"description":"the weather","parameters":` + schema + `}]`,
		`[{"type":"namespace","name":"crm","description":"CRM","tools":[{"type":"function","name":"drop"}]}]`: `[{"type":"namespace","name":"crm","description":"CRM","tools":[` +
			`{"type":"function","name":"drop","description":"drops","parameters":{"type":"object"},"strict":false}]}]`,
		`[{"type":"custom","name":"get_weather"}]`:                                    `[{"type":"custom","name":"get_weather","description":"the weather"}]`,
		`[{"type":"function","name":"mine", "parameters":{}}, {"type":"web_search"}]`: `[{"type":"function","name":"mine", "parameters":{}},{"type":"web_search"}]`,
	} {
		r, err := ParseRequest(json.RawMessage(`{"model":"m","input":"x","tools":` + given + `}`))
		require.NoError(t, err)
		got, err := r.resolve(functions)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	for _, given := range []string{`["nobody"]`, `[{"type":"function","name":"nobody"}]`, `["crm.nobody"]`, `["nobody else"]`, `["crm.nobody.at.all"]`} {
		r, err := ParseRequest(json.RawMessage(`{"model":"m","input":"x","tools":` + given + `}`))
		require.NoError(t, err)
		_, err = r.resolve(functions)
		require.ErrorIs(t, err, ErrInvalidRequest)
		require.ErrorContains(t, err, "nobody")
	}
}

func TestItemsThatAreCalls(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]Call{
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`:                      {Kind: FunctionCall, ID: "c", Function: "f"},
		`{"type":"function_call","call_id":"c","name":"f","namespace":"n","async":true}`:          {Kind: FunctionCall, ID: "c", Function: "n.f", Async: true},
		`{"type":"custom_tool_call","call_id":"c","name":"f","input":"text"}`:                     {Kind: CustomToolCall, ID: "c", Function: "f"},
		`{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{"q":"x"}}`:    {Kind: ToolSearchCall, ID: "c"},
		`{"type":"tool_search_call","call_id":"c","execution":"server"}`:                          {},
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{","status":"incomplete"}`: {},
		`{"type":"message","content":[{"type":"output_text","text":"x"}]}`:                        {},
		`{"type":"reasoning","content":"odd"}`:                                                    {},
	} {
		got, ok := readItem(json.RawMessage(raw)).call(0)
		got.Print = ""
		require.Equal(t, want, got, raw)
		require.Equal(t, want.ID != "", ok, raw)
	}
}

func TestOutputsOfCalls(t *testing.T) {
	t.Parallel()
	plain := item{CallID: "call_1"}
	for name, tc := range map[string]struct {
		it     item
		kind   CallKind
		result call.Result
		want   string
	}{
		"text":   {plain, FunctionCall, call.Result{Success: true, Output: json.RawMessage(`"a\u00e9<"`)}, `{"type":"function_call_output","call_id":"call_1","output":"a\u00e9<"}`},
		"null":   {plain, FunctionCall, call.Result{Success: true, Output: json.RawMessage(`null`)}, `{"type":"function_call_output","call_id":"call_1","output":""}`},
		"parts":  {plain, FunctionCall, call.Result{Success: true, Output: json.RawMessage(`[{"type":"input_file","file_id":"f"}]`)}, `{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_file","file_id":"f"}]}`},
		"error":  {plain, FunctionCall, call.Result{Error: `no "Paris" <here>`}, `{"type":"function_call_output","call_id":"call_1","output":"{\"error\":\"no \\\"Paris\\\" <here>\"}"}`},
		"custom": {plain, CustomToolCall, call.Result{Success: true, Output: json.RawMessage(`"x"`)}, `{"type":"custom_tool_call_output","call_id":"call_1","output":"x"}`},
		"caller": {
			item{CallID: "c", Caller: json.RawMessage(`{"type":"program","caller_id":"p"}`)},
			FunctionCall,
			call.Result{Success: true, Output: json.RawMessage(`"x"`)},
			`{"type":"function_call_output","call_id":"c","caller":{"type":"program","caller_id":"p"},"output":"x"}`,
		},
	} {
		require.Equal(t, tc.want, string(outputItem(tc.kind, tc.it, tc.result)), name)
	}
}

func TestACustomToolIsAFunctionOfOneText(t *testing.T) {
	t.Parallel()
	it := readItem(json.RawMessage(`{"type":"custom_tool_call","input":"SELECT \"1\""}`))
	require.Equal(t, `{"input":"SELECT \"1\""}`, string(it.arguments(call.Function{})))
	require.Equal(t, `{"sql":"SELECT \"1\""}`, string(it.arguments(call.Function{Parameters: json.RawMessage(`{"properties":{"sql":{"type":"string"}}}`)})))
}

func TestASearchLoadsRegisteredFunctions(t *testing.T) {
	t.Parallel()
	functions := registry{
		{Name: "crm.weather", Description: "of a namespace"},
		{Name: "get_time", Description: "Tells the time."},
		{Name: "get_weather", Description: "Tells the weather of a city."},
	}
	for _, arguments := range []string{`{"goal":"the weather in a city"}`, `"{\"goal\":\"the weather in a city\"}"`} {
		it := readItem(json.RawMessage(`{"type":"tool_search_call","call_id":"c","arguments":` + arguments + `}`))
		require.Equal(t, `{"type":"tool_search_output","call_id":"c","execution":"client","status":"completed","tools":[`+
			`{"type":"function","name":"get_weather","description":"Tells the weather of a city.","parameters":{"type":"object"},"strict":false,"defer_loading":true}]}`,
			string(search(it, functions)))
	}
	none := search(readItem(json.RawMessage(`{"call_id":"c","arguments":{"goal":"zzz"}}`)), functions)
	require.Contains(t, string(none), `"tools":[]`)
}
