package call_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestDefinitionsThatSayTheSame(t *testing.T) {
	t.Parallel()
	of := func(parameters string, policy call.Policy) call.Function {
		return call.Function{Name: "f", Description: "d", Parameters: json.RawMessage(parameters), Policy: policy}
	}
	same := func(a, b call.Function) {
		t.Helper()
		require.Equal(t, a.Fingerprint(), b.Fingerprint())
		require.Empty(t, a.Difference(b))
	}
	same(of("", call.Policy{}), of(`{}`, call.Policy{}))
	same(of("", call.Policy{}), of(`{"type":"object"}`, call.Policy{Attempts: 1, Timeout: call.Duration(call.DefaultTimeout)}))
	same(of(`{"type":"object","properties":{"a":{"maximum":1.50},"b":{"minimum":1e2}},"required":["b","a"]}`, call.Policy{}),
		of(` { "properties" : { "b" : {"minimum":100.0} , "a" : {"maximum":15e-1} } , "required" : ["a","b"] } `, call.Policy{}))
	same(of(`{"description":"é<"}`, call.Policy{}), of("{\"description\":\"\\u00e9\\u003c\"}", call.Policy{}))

	a := of(`{"properties":{"n":{"maximum":9007199254740993}}}`, call.Policy{})
	b := of(`{"properties":{"n":{"maximum":9007199254740992}}}`, call.Policy{})
	require.NotEqual(t, a.Fingerprint(), b.Fingerprint())
	require.Equal(t, []string{"parameters.properties.n.maximum is 9007199254740993 and was 9007199254740992"}, a.Difference(b))
}

func TestDifferencesAreNamed(t *testing.T) {
	t.Parallel()
	old := call.Function{Name: "f", Parameters: json.RawMessage(`{"properties":{"a":{"type":"string"},"gone":true},"required":["a"]}`)}
	now := call.Function{
		Name: "f", Description: "does <f>", Verifies: true,
		Parameters: json.RawMessage(`{"properties":{"a":{"type":"integer"},"new":{"enum":["x"]}},"required":["a","new"]}`),
		Policy:     call.Policy{Effects: call.EffectsNone, OnUncertain: call.UncertainFail, Attempts: 1},
	}
	require.Equal(t, []string{
		`description is "does <f>" and was ""`,
		`parameters.properties.a.type is "integer" and was "string"`,
		`parameters.properties.gone is not there and was true`,
		`parameters.properties.new is {"enum":["x"]} and was not there`,
		`parameters.required is ["a","new"] and was ["a"]`,
		`policy.effects is "none" and was "side_effects"`,
		`verifies is true and was false`,
	}, now.Difference(old))
}

func TestAFunctionAsJSON(t *testing.T) {
	t.Parallel()
	f := call.Function{
		Name: "f\n", Description: "é <", Parameters: json.RawMessage("{ \"a\" : \"<\" }"), Verifies: true,
		Policy: call.Policy{Effects: call.EffectsNone},
	}
	body, err := f.AppendJSON([]byte("x"))
	require.NoError(t, err)
	require.Contains(t, string(body), `"parameters":{ "a" : "<" },"verifies":true,"policy":{`)
	var got call.Function
	require.NoError(t, json.Unmarshal(body[1:], &got))
	require.Equal(t, f, got)
	f.Parameters = json.RawMessage("{")
	_, err = f.AppendJSON(nil)
	require.ErrorIs(t, err, call.ErrInvalidFunction)
}

func TestToolsDriftFromFunctions(t *testing.T) {
	t.Parallel()
	tools := call.FunctionTools([]json.RawMessage{
		[]byte(`{"type":"function","name":"f","description":"d","parameters":{"required":["b","a"],"type":"object"},"async":true,"defer_loading":false}`),
		[]byte(`{"type":"web_search","name":"x"}`), []byte(`1`), []byte(`{"type":"function"}`),
	})
	require.Len(t, tools, 1)
	require.True(t, tools[0].Async)
	f := call.Function{Name: "f", Description: "d", Parameters: json.RawMessage(`{"required":["a","b"]}`), Policy: call.Policy{Attempts: 2}}
	require.Empty(t, f.Drift(tools[0]))
	f.Description, f.Parameters = "new", nil
	require.Equal(t, []string{`description is "new" and was "d"`, `parameters.required is not there and was ["a","b"]`}, f.Drift(tools[0]))
	require.Equal(t, "{\n  \"required\": [\n    \"a<\"\n  ],\n  \"type\": \"object\"\n}", string(call.SchemaLines([]byte(`{"required":["a<"]}`))))
}
