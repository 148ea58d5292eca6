package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

type city string

type weather struct {
	City string   `json:"city"`
	Tags []string `json:"tags,omitempty"`
}

// returned gives the outcome of a typed handler that returns out and err.
func invoke[Out any](t *testing.T, out Out, err error) call.Outcome {
	t.Helper()
	ex, newErr := New(Config{Pool: "tools"})
	require.NoError(t, newErr)
	require.NoError(t, Handle(ex, "f", func(context.Context, struct{}) (Out, error) { return out, err }))
	return ex.Invoke(t.Context(), dispatch("f", 1))
}

func TestOutputsReachTheAPIAsMeant(t *testing.T) {
	t.Parallel()
	text := "a text"
	for name, tt := range map[string]struct {
		got  call.Outcome
		wire string
	}{
		"string":              {invoke(t, "<a&b> ü 你", nil), `"<a&b> ü 你"`},
		"empty string":        {invoke(t, "", nil), `""`},
		"zero":                {invoke(t, "0", nil), `"0"`},
		"U+0000":              {invoke(t, "a\x00b", nil), `"a\u0000b"`},
		"invalid UTF-8":       {invoke(t, "a\xff\xfeb", nil), `"a\ufffd\ufffdb"`},
		"named string":        {invoke(t, city("Paris"), nil), `"Paris"`},
		"pointer to string":   {invoke(t, &text, nil), `"a text"`},
		"number":              {invoke(t, 0, nil), `"0"`},
		"false":               {invoke(t, false, nil), `"false"`},
		"struct":              {invoke(t, weather{City: "<Paris>"}, nil), `"{\"city\":\"<Paris>\"}"`},
		"pointer to struct":   {invoke(t, &weather{City: "Paris"}, nil), `"{\"city\":\"Paris\"}"`},
		"time":                {invoke(t, time.Unix(0, 0).UTC(), nil), `"\"1970-01-01T00:00:00Z\""`},
		"nested":              {invoke(t, map[string]any{"a": []any{1, nil, map[string]any{}}}, nil), `"{\"a\":[1,null,{}]}"`},
		"slice":               {invoke(t, []int{1, 2}, nil), `"[1,2]"`},
		"empty slice":         {invoke(t, []int{}, nil), `"[]"`},
		"nil slice":           {invoke(t, []int(nil), nil), `"[]"`},
		"nil map":             {invoke(t, map[string]int(nil), nil), `"{}"`},
		"nil pointer":         {invoke[*weather](t, nil, nil), `null`},
		"nil interface":       {invoke[any](t, nil, nil), `null`},
		"any":                 {invoke[any](t, "x", nil), `"x"`},
		"raw JSON, as it is":  {invoke(t, json.RawMessage(`{"n": 9007199254740993, "n":1e400}`), nil), `"{\"n\": 9007199254740993, \"n\":1e400}"`},
		"raw null":            {invoke(t, json.RawMessage(`null`), nil), `"null"`},
		"raw lone surrogate":  {invoke(t, json.RawMessage(`"\ud800"`), nil), `"\"\\ud800\""`},
		"bytes":               {invoke(t, []byte("plain"), nil), `"plain"`},
		"nil bytes":           {invoke(t, []byte(nil), nil), `""`},
		"already an Output":   {invoke(t, Text("x"), nil), `"x"`},
		"no value":            {invoke(t, Output{}, nil), `null`},
		"content":             {invoke(t, Content{TextPart("<a>\xff"), ImagePart("data:image/png;base64,AAAA")}, nil), `[{"type":"input_text","text":"<a>\ufffd"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]`},
		"content with no txt": {invoke(t, Content{TextPart("")}, nil), `[{"type":"input_text","text":""}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, call.Success, tt.got.Kind, tt.got.Error)
			require.Equal(t, tt.wire, string(tt.got.Output))
			require.True(t, json.Valid(tt.got.Output))
		})
	}
}

func TestOutputsThatCannotBeWrittenAreFailures(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]call.Outcome{
		"NaN":               invoke(t, math.NaN(), nil),
		"channel":           invoke(t, map[string]any{"c": make(chan int)}, nil),
		"empty content":     invoke(t, Content{}, nil),
		"image without URL": invoke(t, Content{ImagePart("")}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, call.Failure, o.Kind)
			require.Equal(t, call.ReasonInvalidOutput, o.Cause)
			require.NotEmpty(t, o.Error)
		})
	}
}

func TestErrorsBecomeOutcomes(t *testing.T) {
	t.Parallel()
	plain := errors.New("customer 456 not found")
	for name, tt := range map[string]struct {
		err  error
		want call.Outcome
	}{
		"business failure":   {plain, call.Outcome{Kind: call.Failure, Error: "customer 456 not found"}},
		"with a cause":       {Failure("quota", "no quota left"), call.Outcome{Kind: call.Failure, Error: "no quota left", Cause: "quota"}},
		"wrapped":            {fmt.Errorf("crm: %w", Failure("quota", "no quota left")), call.Outcome{Kind: call.Failure, Error: "crm: no quota left", Cause: "quota"}},
		"technical failure":  {Retry(plain, time.Second), call.Outcome{Kind: call.Retry, Reason: "customer 456 not found", After: time.Second}},
		"retry, wrapped":     {fmt.Errorf("crm: %w", Retry(plain, 0)), call.Outcome{Kind: call.Retry, Reason: "crm: customer 456 not found"}},
		"negative delay":     {Retry(plain, -time.Second), call.Outcome{Kind: call.Retry, Reason: "customer 456 not found"}},
		"empty text":         {errors.New(" "), call.Outcome{Kind: call.Failure, Error: "the function failed without saying why"}},
		"invalid UTF-8":      {errors.New("a\xffb"), call.Outcome{Kind: call.Failure, Error: "a\uFFFDb"}},
		"a context's error":  {context.DeadlineExceeded, call.Outcome{Kind: call.Failure, Error: "context deadline exceeded"}},
		"output is not used": {plain, call.Outcome{Kind: call.Failure, Error: "customer 456 not found"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invoke(t, "output", tt.err)
			require.Equal(t, outcome(dispatch("f", 1), tt.want), got)
		})
	}
	require.NoError(t, Retry(nil, time.Second))
}

func TestParseContent(t *testing.T) {
	t.Parallel()
	c, err := ParseContent([]byte(`[{"type":"input_text","text":"\ud800"},{"image_url":"https://x/y.png","type":"input_image"},{"type":"input_file","file_id":"file_1"}]`))
	require.NoError(t, err)
	o, err := c.Output()
	require.NoError(t, err)
	require.Equal(t, `[{"type":"input_text","text":"`+"\uFFFD"+`"},{"type":"input_image","image_url":"https://x/y.png"},{"type":"input_file","file_id":"file_1"}]`, string(o.wire()))
	for raw, want := range map[string]string{
		``:                               "invalid content array: it is not a JSON array",
		`null`:                           "invalid content array: it is not a JSON array",
		`"text"`:                         "invalid content array: it is not a JSON array",
		`[]`:                             "invalid content array: it has no parts",
		`[{"type":"input_text"}]`:        "invalid content array: part 0: input_text takes exactly the member text",
		`[{"type":"input_image"}]`:       "invalid content array: part 0: input_image takes exactly the member image_url, not empty",
		`[{"type":"input_file"}]`:        "invalid content array: part 0: input_file takes exactly the member file_id, not empty",
		`[{"type":"output_text"}]`:       `invalid content array: part 0: the type is "output_text"; use input_text, input_image or input_file`,
		`[{"type":"input_text","x":"1"}`: "invalid content array: it is not a JSON array",
		`[{"type":"input_text","text":"","x":1}]`: `invalid content array: part 0: json: unknown field "x"`,
	} {
		_, err := ParseContent([]byte(raw))
		require.EqualError(t, err, want, raw)
	}
}

func TestArgumentsReachARawHandlerAsTheyAre(t *testing.T) {
	t.Parallel()
	ex, err := New(Config{Pool: "tools"})
	require.NoError(t, err)
	var raw, typed json.RawMessage
	require.NoError(t, HandleRaw(ex, "raw", func(_ context.Context, c Call) (Output, error) { raw = c.Arguments; return Output{}, nil }))
	require.NoError(t, Handle(ex, "typed", func(_ context.Context, in json.RawMessage) (string, error) { typed = in; return "", nil }))
	for _, arguments := range []string{
		`{"n":9007199254740993}`, `{"n":1e400}`, `{"a":1,"a":2}`, `{"t":"<a&b>"}`, `{ "b" : 1 , "a":2}`, `{"t":"\ud800 \u0000"}`,
		`{"d":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, `""`, `null`, `[]`, `"{\"a\":1}"`, ``,
	} {
		d := dispatch("raw", 1)
		d.Arguments = json.RawMessage(arguments)
		require.Equal(t, call.Success, ex.Invoke(t.Context(), d).Kind)
		require.Equal(t, arguments, string(raw))
		d.Function = "typed"
		require.Equal(t, call.Success, ex.Invoke(t.Context(), d).Kind)
		require.Equal(t, arguments, string(typed))
	}
}

type order struct {
	ID    int64          `json:"id"`
	Price float64        `json:"price,omitempty"`
	Items []item         `json:"items,omitempty"`
	Extra map[string]any `json:"extra,omitempty"`
}

type item struct {
	Name string `json:"name"`
}

func TestTypedArguments(t *testing.T) {
	t.Parallel()
	ex, err := New(Config{Pool: "tools"})
	require.NoError(t, err)
	var got order
	entered := 0
	require.NoError(t, Handle(ex, "order", func(_ context.Context, in *order) (string, error) {
		entered++
		got = *in
		return "ok", nil
	}))
	require.NoError(t, Handle(ex, "none", func(context.Context, struct{}) (string, error) { return "ok", nil }))
	run := func(function, arguments string) call.Outcome {
		d := dispatch(function, 1)
		d.Arguments = json.RawMessage(arguments)
		return ex.Invoke(t.Context(), d)
	}
	require.Equal(t, "ok", textOf(t, run("order", `{"id":9007199254740993,"items":[{"name":"a"}],"extra":{"x":1}}`)))
	require.Equal(t, int64(9007199254740993), got.ID)
	for _, empty := range []string{``, `null`, `{}`, ` {} `} {
		require.Equal(t, "ok", textOf(t, run("none", empty)))
	}
	entered = 0
	for arguments, want := range map[string]string{
		``:                                   `invalid arguments: required: missing properties: ["id"]`,
		`null`:                               `invalid arguments: required: missing properties: ["id"]`,
		`[]`:                                 `invalid arguments: want a JSON object`,
		`"x"`:                                `invalid arguments: want a JSON object`,
		`{`:                                  `invalid arguments: not valid JSON: unexpected EOF`,
		`{"id":"5"}`:                         `invalid arguments: id: type: 5 has type "string", want "integer"`,
		`{"id":5.5}`:                         `invalid arguments: id: type: 5.5 has type "number", want "integer"`,
		`{"id":1e30}`:                        `invalid arguments: id: number 1e30 is out of range`,
		`{"id":1,"price":1e400}`:             `invalid arguments: price: number 1e400 is out of range`,
		`{"id":1,"items":[{"name":5}]}`:      `invalid arguments: items[].name: type: 5 has type "integer", want "string"`,
		`{"id":1,"unknown":true}`:            `invalid arguments: unexpected additional properties ["unknown"]`,
		`{"id":1,"items":[{"nome":"typo"}]}`: `invalid arguments: items[]: unexpected additional properties ["nome"]`,
	} {
		o := run("order", arguments)
		require.Equal(t, call.Failure, o.Kind, arguments)
		require.Equal(t, call.ReasonInvalidArguments, o.Cause)
		require.Equal(t, want, o.Error, arguments)
	}
	require.Zero(t, entered, "the handler is never called with bad arguments")
}

func TestSchemaIsDerived(t *testing.T) {
	t.Parallel()
	ex, err := New(Config{Pool: "tools"})
	require.NoError(t, err)
	type in struct {
		City string `json:"city" jsonschema:"the city's name"`
		Days int    `json:"days,omitempty"`
	}
	require.NoError(t, Handle(ex, "get_weather", func(context.Context, in) (string, error) { return "", nil },
		WithDescription("Weather."), WithTimeout(5*time.Second), WithQueueTimeout(time.Minute), WithEffects(call.EffectsNone)))
	f := ex.Functions()[0]
	require.JSONEq(t, `{"type":"object","properties":{"city":{"type":"string","description":"the city's name"},"days":{"type":"integer"}},
		"required":["city"],"additionalProperties":false}`, string(f.Parameters))
	require.Equal(t, "Weather.", f.Description)
	require.Equal(t, call.Policy{Timeout: call.Duration(5 * time.Second), QueueTimeout: call.Duration(time.Minute), Effects: call.EffectsNone}, f.Policy)
}

func TestGivenSchemaReplacesTheDerivedOne(t *testing.T) {
	t.Parallel()
	ex, err := New(Config{Pool: "tools"})
	require.NoError(t, err)
	schema := json.RawMessage(`{"type":"object","properties":{"op":{"enum":["add","sub"]}},"required":["op"]}`)
	require.NoError(t, Handle(ex, "calculate", func(_ context.Context, in map[string]any) (any, error) { return in["op"], nil }, WithParameters(schema)))
	require.Equal(t, string(schema), string(ex.Functions()[0].Parameters))
	d := dispatch("calculate", 1)
	d.Arguments = json.RawMessage(`{"op":"pow"}`)
	require.Equal(t, "invalid arguments: op: enum: pow does not equal any of: [add sub]", ex.Invoke(t.Context(), d).Error)
}
