package toollist_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/toollist"
	"github.com/callfan/callfan/pkg/call"
)

func fn(name, description, parameters string) call.Function {
	return call.Function{Name: name, Description: description, Parameters: json.RawMessage(parameters)}
}

const strict = `{ "type": "object", "properties": {"id": {"type": ["string", "null"]}}, "required": ["id"], "additionalProperties": false }`

func TestLists(t *testing.T) {
	t.Parallel()
	functions := []call.Function{fn("a", "does <a>", strict), fn("b", "", "")}
	list := func(o toollist.Options) (string, []toollist.Loose) {
		t.Helper()
		body, loose, err := toollist.Append(nil, functions, o)
		require.NoError(t, err)
		require.True(t, json.Valid(body))
		return string(body), loose
	}
	got, loose := list(toollist.Options{})
	require.Empty(t, loose)
	require.Equal(t, `[
  {"type":"function","name":"a","description":"does <a>","parameters":`+strict+`},
  {"type":"function","name":"b","description":"","parameters":{"type":"object"}}
]
`, got)
	got, _ = list(toollist.Options{DeferLoading: true, ToolSearch: true})
	require.Equal(t, `[
  {"type":"function","name":"a","description":"does <a>","parameters":`+strict+`,"defer_loading":true},
  {"type":"function","name":"b","description":"","parameters":{"type":"object"},"defer_loading":true},
  {"type":"tool_search"}
]
`, got)
	got, loose = list(toollist.Options{Responses: true})
	require.Equal(t, `[
  {"type":"function","name":"a","description":"does <a>","parameters":`+strict+`,"strict":true},
  {"type":"function","name":"b","description":"","parameters":{"type":"object"},"strict":false}
]
`, got)
	require.Equal(t, []toollist.Loose{{Function: "b", Why: []string{"properties is missing", "additionalProperties must be false"}}}, loose)

	body, loose, err := toollist.Append(nil, []call.Function{
		fn("crm.find", "Finds.", strict), fn("a", "", strict), fn("crm.drop", "", ""), fn("erp.find", "", strict),
	}, toollist.Options{Responses: true, DeferLoading: true, ToolSearch: true})
	require.NoError(t, err)
	find := `{"type":"function","name":"find","description":"Finds.","parameters":` + strict + `,"strict":true,"defer_loading":true}`
	require.Equal(t, `[
  {"type":"namespace","name":"crm","description":"The functions of crm.","tools":[`+find+
		`,{"type":"function","name":"drop","description":"","parameters":{"type":"object"},"strict":false,"defer_loading":true}]},
  {"type":"function","name":"a","description":"","parameters":`+strict+`,"strict":true,"defer_loading":true},
  {"type":"namespace","name":"erp","description":"The functions of erp.","tools":[`+strings.Replace(find, "Finds.", "", 1)+`]},
  {"type":"tool_search"}
]
`, string(body))
	require.Len(t, loose, 1)
	require.Equal(t, "crm.drop", loose[0].Function)

	for _, name := range []string{"a.b.c", "北京", "a b", ".a", "a.", "", strings.Repeat("n", 65) + ".a", strings.Repeat("n", 129)} {
		_, _, err := toollist.Append(nil, []call.Function{fn(name, "", "")}, toollist.Options{Responses: true})
		require.ErrorContains(t, err, strconv.Quote(name), name)
	}
	body, _, err = toollist.Append(nil, nil, toollist.Options{})
	require.NoError(t, err)
	require.Equal(t, "[]\n", string(body))
}

func TestWhatIsNotStrict(t *testing.T) {
	t.Parallel()
	in := func(property string) string {
		return `{"type":"object","properties":{"p":` + property + `},"required":["p"],"additionalProperties":false}`
	}
	for _, schema := range []string{
		strict, `{"type":"object","properties":{},"additionalProperties":false}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","type":"object","properties":{"p":{"$ref":"#/$defs/n"}},"required":["p"],"additionalProperties":false,
			"$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}}}`,
		in(`{"type":"array","items":{"type":"number","multipleOf":0.5,"minimum":1},"minItems":1}`),
		in(`{"type":"string","pattern":"^a","format":"date-time","enum":["a"]}`),
	} {
		require.Empty(t, toollist.NotStrict(json.RawMessage(schema)), schema)
	}
	deep := `{"type":"string"}`
	for range 11 {
		deep = in(deep)
	}
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"p":{"type":"string"}},"additionalProperties":false}`: "p: must be in required; let it be null instead",
		`{"type":"object","properties":{},"required":["q"],"additionalProperties":false}`:     "required names q, which is no property",
		`{"type":"object","properties":{},"additionalProperties":true}`:                       "additionalProperties must be false",
		`{"properties":{},"additionalProperties":false,"anyOf":[]}`:                           `type must be "object"`,
		in(`{"type":"string","minLength":1}`):                                                 "p: minLength is not supported",
		in(`{"type":"string","default":"x"}`):                                                 "p: default is not supported",
		in(`{"oneOf":[{"type":"string"}]}`):                                                   "p: oneOf is not supported",
		in(`{"type":"string","format":"uri"}`):                                                `p: format "uri" is not supported`,
		in(`{"$ref":"#/x","description":"d"}`):                                                "p: $ref must stand alone",
		in(`{"$ref":"https://example.com/x"}`):                                                "p: $ref must point into the schema",
		in(`{"description":"d"}`):                                                             "p: type is missing",
		in(`{"type":"array"}`):                                                                "p: items is missing",
		in(`{"type":"array","items":{"type":"object","properties":{}}}`):                      "p[]: additionalProperties must be false",
		in(`{"anyOf":[{"type":"object","properties":{}}]}`):                                   "p.anyOf[0]: additionalProperties must be false",
		in(`true`): "p: a schema must be an object",
		deep:       "p.p.p.p.p.p.p.p.p.p: deeper than 10 levels",
		`[]`:       "the schema is not an object",
		`{`:        "the schema is not JSON",
	} {
		require.Contains(t, toollist.NotStrict(json.RawMessage(schema)), want, schema)
	}
}
