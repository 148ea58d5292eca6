package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// functions are declared in full, so that single tests of level full can be run; the
// bodies are those of the core and a few more.
func functions() []call.Function {
	none, idempotent := call.Policy{Effects: call.EffectsNone}, call.Policy{Effects: call.EffectsIdempotent}
	retries := call.Policy{Effects: call.EffectsIdempotent, Attempts: 5}
	if fault("wrong-policy") {
		retries.Attempts = 3
	}
	f := func(name, properties string, p call.Policy) call.Function {
		return call.Function{
			Name: name, Description: "The function " + name + ".", Policy: p, Verifies: name == "pay",
			Parameters: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`),
		}
	}
	const ms, text = `"ms":{"type":"integer"}`, `"text":{"type":"string"}`
	return []call.Function{
		f("echo", "", none), f("sag mir, wo ☂.*>", "", none), f("a/"+strings.Repeat("n", 300), "", none),
		f("fail", text, none), f("retry", `"after_ms":{"type":"integer"},"ok_at":{"type":"integer"}`, retries), f("sleep", ms, idempotent),
		f("key", "", idempotent), f("text", text, none), f("parts", "", none), f("object", "", none), f("nothing", "", none),
		f("crash", "", none), f("typed", `"count":{"type":"integer"}`, none), f("block", ms, idempotent),
		f("stuck", "", call.Policy{Effects: call.EffectsNone, Timeout: call.Duration(time.Second), Attempts: 1}),
		f("exit", `"unless":{"type":"string"}`, idempotent), f("large", `"bytes":{"type":"integer"}`, none),
		f("pay", ms+`,"verdict":{"type":"string"}`, call.Policy{}), f("pay_blind", ms, call.Policy{}),
		f("pay_park", ms, call.Policy{OnUncertain: call.UncertainPark}),
	}
}

func names() []string {
	var names []string
	for _, f := range functions() {
		names = append(names, f.Name)
	}
	return names
}

func token(name string) string { return call.Token(name) }

// run is the body of a function; it gives the outcome's members.
func (d *delivery) run(ctx context.Context) string {
	var in struct {
		Text    string `json:"text"`
		MS      int64  `json:"ms"`
		AfterMS int64  `json:"after_ms"`
		OkAt    int    `json:"ok_at"`
		Bytes   int    `json:"bytes"`
	}
	_ = json.Unmarshal(d.Arguments, &in)
	switch d.Name {
	case "echo":
		if fault("re-encodes") {
			var value any
			_ = json.Unmarshal(d.Arguments, &value)
			return success(string(quoteValue(value)))
		}
		return success(string(d.Arguments))
	case "text":
		if fault("trims") {
			return success(strings.TrimSpace(in.Text))
		}
		return success(in.Text)
	case "object":
		text := `{"name":"Žluťoučký kůň ☂","nested":{"list":[1,2.5,true,null,"<a>&"],"empty":{}},"integer":9007199254740991,"text":"{\"quoted\":\"\\n\"}"}`
		if fault("serialises-twice") {
			text = quote(text)
		}
		return success(text)
	case "nothing":
		if fault("no-value-is-a-text") {
			return success("null")
		}
		return `"success":true,"output":null`
	case "large":
		return success(strings.Repeat("x", in.Bytes))
	case "fail":
		return failure("", in.Text)
	case "retry":
		if d.attempt < in.OkAt {
			if fault("after-in-seconds") {
				in.AfterMS /= 1000
			}
			return `"retry":{"reason":"not yet","after_ms":` + string(quoteValue(in.AfterMS)) + `}`
		}
		return success("ok")
	case "key":
		facts := map[string]any{
			"idempotency_key": d.key, "attempt": d.attempt, "function": d.Name,
			"session_id": d.Session, "turn_id": d.Turn, "call_id": d.Call,
		}
		return success(string(quoteValue(facts)))
	case "block":
		for end := time.Now().Add(time.Duration(in.MS) * time.Millisecond); time.Now().Before(end); {
		}
		return success("blocked")
	case "pay", "pay_blind", "pay_park":
		d.log("effect")
		pause(ctx, time.Duration(in.MS)*time.Millisecond)
		return success("paid")
	default:
		pause(ctx, time.Duration(in.MS)*time.Millisecond)
		return success("slept")
	}
}

func success(text string) string { return `"success":true,"output":` + quote(text) }

func failure(cause, text string) string {
	if cause == "" {
		return `"success":false,"error":` + quote(text)
	}
	return `"success":false,"error":` + quote(text) + `,"cause":` + quote(cause)
}

func quote(text string) string { return string(quoteValue(text)) }

func quoteValue(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// log appends an event to the suite's log.
func (d *delivery) log(event string) {
	line := quoteValue(map[string]any{
		"event": event, "function": d.Name, "call_id": d.Call, "attempt": d.attempt,
		"idempotency_key": d.key, "at_ms": time.Now().UnixMilli(), "pid": os.Getpid(),
	})
	file, err := os.OpenFile(os.Getenv("CONFORMANCE_LOG"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}
