package conformance

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// texts are outputs that must reach the model as they are.
var texts = []struct{ name, text string }{
	{"empty", ""},
	{"white-space", "  \t\n two lines \r\n "},
	{"json", `{"a": 1.0, "b": [1e400]}`},
	{"null", "null"},
	{"quotes", `"quoted" 'text' \ \n \u0041`},
	{"control", "a\u0000b\u001b[0m\u007f"},
	{"unicode", "☂ žluťoučký 😀 e\u0301 \u2028\u2029\ufeff"},
	{"markup", "<b>&amp;</b>"},
}

const objectValue = `{"name":"Žluťoučký kůň ☂","nested":{"list":[1,2.5,true,null,"<a>&"],"empty":{}},"integer":9007199254740991,"text":"{\"quoted\":\"\\n\"}"}`

func outputChecks() []check {
	checks := []check{
		full("outputs/parts", outputParts),
		full("outputs/object", outputObject),
		full("outputs/nothing", outputNothing),
		full("outputs/invalid-unicode", outputInvalidUnicode),
		full("outputs/too-large", outputTooLarge),
		full("outputs/megabyte", func(t *trial) { t.succeeds(t.call("large", `{"bytes":1048576}`), strings.Repeat("x", 1<<20)) }),
		full("outputs/executor-name", outputExecutor),
	}
	for _, o := range texts {
		checks = append(checks, full("outputs/text-"+o.name, func(t *trial) {
			arguments, err := json.Marshal(map[string]string{"text": o.text})
			t.must(err, "write the arguments")
			t.succeeds(t.call("text", string(arguments)), o.text)
		}))
	}
	return checks
}

func outputParts(t *trial) {
	o := t.kind(t.call("parts", `{}`), call.Success)
	var got any
	if err := json.Unmarshal(o.Output, &got); err != nil {
		t.failf("the output is %s: %w", shorten(string(o.Output)), err)
	}
	want := []any{
		map[string]any{"type": "input_text", "text": "first"},
		map[string]any{"type": "input_text", "text": "second ☂"},
	}
	if !reflect.DeepEqual(got, want) {
		t.failf("the output on the wire is %s; want an array of two content parts", shorten(string(o.Output)))
	}
}

func outputObject(t *trial) {
	text := t.text(t.kind(t.call("object", `{}`), call.Success))
	if got, want := exact(text), exact(objectValue); got == nil || !reflect.DeepEqual(got, want) {
		t.failf("the text of the output is %s; want the JSON of the object, serialised once", shorten(text))
	}
}

// exact reads a JSON object with the digits of its numbers, nil if it is none.
func exact(text string) map[string]any {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var value map[string]any
	if dec.Decode(&value) != nil {
		return nil
	}
	return value
}

func outputNothing(t *trial) {
	if o := t.kind(t.call("nothing", `{}`), call.Success); string(o.Output) != "null" {
		t.failf("the output on the wire is %s; want null", shorten(string(o.Output)))
	}
}

// outputInvalidUnicode: a lone surrogate must not reach the API, which refuses a whole
// batch for it. A parser that refuses it is as good as a replacement.
func outputInvalidUnicode(t *trial) {
	o := t.only(t.call("text", `{"text":"a\ud800b"}`))
	if o.Kind == call.Failure && o.Cause == call.ReasonInvalidArguments {
		return
	}
	text := t.text(o)
	middle := strings.TrimSuffix(strings.TrimPrefix(text, "a"), "b")
	if strings.Trim(middle, "\uFFFD") != "" || middle == "" || bytes.Contains(bytes.ToLower(o.Output), []byte(`\ud800`)) {
		t.failf("the output on the wire is %s; want U+FFFD in place of the lone surrogate", o.Output)
	}
}

func outputTooLarge(t *trial) {
	p := t.call("large", `{"bytes":3145728}`)
	if o := t.fails(p, call.ReasonTooLarge); !strings.Contains(o.Error, "too large") {
		t.failf("the text of the failure is %q; want one that says too large", o.Error)
	}
	t.runs(p, 1)
}

func outputExecutor(t *trial) {
	o := t.kind(t.call("echo", `{}`), call.Success)
	for _, reg := range t.registeredAs("echo") {
		if reg.Executor.ID != "" && reg.Executor.ID == o.Executor {
			return
		}
	}
	t.failf("the outcome has the executor %q; want the id of a registration", o.Executor)
}
