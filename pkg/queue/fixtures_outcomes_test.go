package queue

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// outcomeCase is what an attempt came to, and the message that says so.
type outcomeCase struct {
	Name  string         `json:"name"`
	About string         `json:"about,omitempty"`
	Kind  call.Kind      `json:"kind"`
	Call  answeredCall   `json:"call"`
	Input outcomeInput   `json:"input"`
	Want  outcomeMessage `json:"expect"`
}

// answeredCall is what an executor knows of the call that it answers.
type answeredCall struct {
	Session       string `json:"session_id"`
	Turn          string `json:"turn_id"`
	Call          string `json:"call_id"`
	Function      string `json:"function"`
	Attempt       int    `json:"attempt"`
	Handover      int    `json:"handover"`
	Nonce         string `json:"nonce"`
	ResultSubject string `json:"result_subject"`
}

// outcomeInput is what the handler or the executor decided. For a success exactly one
// of Text, Bytes, UTF16, Parts, Value and None is there.
type outcomeInput struct {
	Text     *string         `json:"text,omitempty"`
	Bytes    string          `json:"bytes,omitempty"` // a file
	UTF16    []uint16        `json:"utf16,omitempty"` // code units
	Parts    json.RawMessage `json:"parts,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	None     bool            `json:"none,omitempty"`
	Error    *string         `json:"error,omitempty"`
	Cause    string          `json:"cause,omitempty"`
	Reason   *string         `json:"reason,omitempty"`
	AfterMS  *int64          `json:"after_ms,omitempty"`
	Executor string          `json:"executor,omitempty"`
}

type outcomeMessage struct {
	wireMessage
	// OutputText is a file: the text that the member output has to be, in UTF-8.
	OutputText string `json:"output_text,omitempty"`
	// OutputJSON: the text is JSON that has to equal the input's value; its form is free.
	OutputJSON bool `json:"output_is_json,omitempty"`
}

func fixtureOutcome(name, about string, kind call.Kind, input outcomeInput) outcomeCase {
	c := outcomeCase{Name: name, About: about, Kind: kind, Input: input, Call: answeredCall{
		Session: "sess_1", Turn: "turn_1", Call: "call_1", Function: "get_customer", Attempt: 1, Handover: 1,
	}}
	if name == "hostile-ids" {
		c.Call.Session, c.Call.Turn, c.Call.Call = "sess/1 é%2F", "turn \"1\"\\\r\n", "call_😀,\"arguments\":{}"
		c.Call.Function, c.Call.Attempt, c.Call.Handover = "ns.get customer", 3, 2
	}
	if name == "released-again" {
		c.Call.Handover = 12
	}
	token := call.Token(c.Call.Function)
	c.Call.ResultSubject = names{"fn"}.result(token, 7)
	c.Call.Nonce = fixtureNonces.For(c.Call.key(), token, c.Call.Attempt)
	if strings.HasPrefix(name, "operator-") {
		c.Call.Nonce = fixtureNonces.Decision(c.Call.key(), token, c.Call.Attempt)
	}
	return c
}

func (a answeredCall) key() call.Key { return call.Key{Session: a.Session, Turn: a.Turn, Call: a.Call} }

func fixtureOutcomes() []outcomeCase {
	success := func(name, about string, input outcomeInput) outcomeCase {
		return fixtureOutcome("success-"+name, about, call.Success, input)
	}
	return []outcomeCase{
		success("text", "", outcomeInput{Text: new("Example Customer, plan pro")}),
		success("text-empty", "an empty text is a text", outcomeInput{Text: new("")}),
		success("text-white-space", "nothing is trimmed", outcomeInput{Text: new(" \n\t a \r\n ")}),
		success("text-control", "control characters, NUL included", outcomeInput{Text: new("a\x00b\x01\x1f\x7f\b\f")}),
		success("text-quotes", "", outcomeInput{Text: new(`say "hi" \ / {"a":1}`)}),
		success("text-markup", "", outcomeInput{Text: new("<a&b> </script>")}),
		success("text-unicode", "nothing is normalised", outcomeInput{Text: new("é e\u0301 天 😀 \u2028\u2029\ufeff\ufffd\U0010ffff")}),
		success("text-json", "a text that is JSON stays a text", outcomeInput{Text: new(`{"n":9007199254740993, "x":1e400}`)}),
		success("text-zero", "", outcomeInput{Text: new("0")}),
		success("text-null", "", outcomeInput{Text: new("null")}),
		success("text-long", "", outcomeInput{Text: new(strings.Repeat("0123456789 é 😀 ", 4096))}),
		success("bytes-invalid", "for languages whose texts are bytes: what is not UTF-8 becomes U+FFFD", outcomeInput{Bytes: "outcomes/success-bytes-invalid.bytes"}),
		success("utf16-invalid", "for languages whose texts are UTF-16 or may hold surrogates: one without its partner becomes U+FFFD", outcomeInput{
			UTF16: []uint16{'a', 0xd800, 'b', 0xdc00, 0xdc00, 0xd83d, 0xde00, 'c', 0xdbff},
		}),
		success("value-object", "a value is serialised once; the text is its JSON", outcomeInput{Value: json.RawMessage(`{"name":"Example <Customer>","plan":"pro","tags":["a",1,true,null,1.5]}`)}),
		success("value-number", "", outcomeInput{Value: json.RawMessage(`42`)}),
		success("value-false", "false is a value, not the absence of one", outcomeInput{Value: json.RawMessage(`false`)}),
		success("value-array", "an array of values is no array of content parts", outcomeInput{Value: json.RawMessage(`[{"type":"text","text":"x"}]`)}),
		success("value-empty-array", "", outcomeInput{Value: json.RawMessage(`[]`)}),
		success("none", "no value at all", outcomeInput{None: true}),
		success("parts", "content parts, in their order", outcomeInput{Parts: json.RawMessage(`[{"type":"input_text","text":"a <b> 😀"},{"type":"input_image","image_url":"https://example.com/a.png?x=1&y=2"},{"type":"input_text","text":""}]`)}),
		success("executor", "the executor's name goes with any outcome", outcomeInput{Text: new("x"), Executor: "host-1/42 é"}),
		fixtureOutcome("failure", "the handler's own error", call.Failure, outcomeInput{Error: new("customer \"999\" not found\n<try another>")}),
		fixtureOutcome("failure-cause", "an error that the executor decided", call.Failure, outcomeInput{Error: new("timed out after 30s"), Cause: call.ReasonTimeout}),
		fixtureOutcome("failure-unicode", "", call.Failure, outcomeInput{Error: new("naïve 天 😀 \x00"), Executor: "e"}),
		fixtureOutcome("retry", "the dispatcher decides when", call.Retry, outcomeInput{Reason: new("HTTP 503"), AfterMS: new(int64(0))}),
		fixtureOutcome("retry-after", "not before one and a half seconds", call.Retry, outcomeInput{Reason: new("rate limit"), AfterMS: new(int64(1500))}),
		fixtureOutcome("retry-after-longest", "seven days", call.Retry, outcomeInput{Reason: new(""), AfterMS: new(maxAfter.Milliseconds())}),
		fixtureOutcome("released", "the hand-over's number is part of the message id", call.Released, outcomeInput{}),
		fixtureOutcome("released-again", "the same attempt, another hand-over", call.Released, outcomeInput{Executor: "host-1"}),
		fixtureOutcome("uncertain", "", call.Uncertain, outcomeInput{Reason: new("the bank does not answer")}),
		fixtureOutcome("deferred", "", call.Deferred, outcomeInput{}),
		fixtureOutcome("hostile-ids", "ids that need escapes, and a function whose name is no token", call.Success, outcomeInput{Text: new("x")}),
	}
}

func operatorOutcomes() []outcomeCase {
	return []outcomeCase{
		fixtureOutcome("operator-success", "", call.Success, outcomeInput{Text: new("receipt 1"), Executor: "jane"}),
		fixtureOutcome("operator-failure", "", call.Failure, outcomeInput{Error: new("not charged"), Cause: call.ReasonOperator}),
		fixtureOutcome("operator-rerun", "the call is handed over again, as a new attempt", call.Rerun, outcomeInput{Executor: "jane"}),
	}
}

// outcome is the case's as the encoder takes it. raw is the text of a success.
func (c *outcomeCase) outcome(t *testing.T) (o call.Outcome, raw []byte) {
	t.Helper()
	o = call.Outcome{Kind: c.Kind, Cause: c.Input.Cause, Executor: c.Input.Executor}
	in := c.Input
	if in.Error != nil {
		o.Error = *in.Error
	}
	if in.Reason != nil {
		o.Reason = *in.Reason
	}
	if in.AfterMS != nil {
		o.After = time.Duration(*in.AfterMS) * time.Millisecond
	}
	switch {
	case in.Text != nil:
		raw = []byte(*in.Text)
	case in.Bytes != "":
		golden(t, in.Bytes, []byte("a\xffb\xc3(\xfe é"))
		raw = []byte("a\ufffdb\ufffd(\ufffd é")
	case in.UTF16 != nil:
		raw = []byte(string(utf16.Decode(in.UTF16)))
	case in.Value != nil:
		raw = in.Value
	case in.Parts != nil:
		o.Output = in.Parts
	}
	if raw != nil {
		o.Output = appendString(nil, string(raw))
	}
	return o, raw
}

func TestFixtureOutcomes(t *testing.T) {
	t.Parallel()
	writeOutcomes(t, "outcomes.json", "What attempts came to, and the outcome messages that say so. Payloads are compared as JSON.", fixtureOutcomes())
	writeOutcomes(t, "operator-outcomes.json", "Operators' decisions about calls. Executors never write them and have no nonce for them.", operatorOutcomes())
}

func writeOutcomes(t *testing.T, file, about string, cases []outcomeCase) {
	t.Helper()
	n := names{"fn"}
	for i := range cases {
		c := &cases[i]
		o, raw := c.outcome(t)
		d := call.Dispatch{Call: call.Call{Key: c.Call.key(), Function: c.Call.Function}, Nonce: c.Call.Nonce, Handover: c.Call.Handover, Partition: 7}
		m, err := n.encodeOutcome(&d, &o)
		require.NoError(t, err, c.Name)
		c.Want.wireMessage = goldenMessage(t, m, "outcomes/"+c.Name+".payload")
		payloadFits(t, "outcome", m.Data, true, c.Name)
		if raw == nil {
			continue
		}
		c.Want.OutputJSON = c.Input.Value != nil
		c.Want.OutputText = "outcomes/" + c.Name + ".output"
		golden(t, c.Want.OutputText, raw)
		var read struct{ Output string }
		require.NoError(t, json.Unmarshal(m.Data, &read))
		require.Equal(t, string(raw), read.Output, c.Name)
	}
	goldenIndex(t, file, about, cases)
}

// readOutcome is an outcome as a dispatcher understands it.
type readOutcome struct {
	Kind     call.Kind       `json:"kind"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    string          `json:"error,omitempty"`
	Cause    string          `json:"cause,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	AfterMS  int64           `json:"after_ms,omitempty"`
	Executor string          `json:"executor,omitempty"`
}

type foreignOutcome struct {
	Name  string `json:"name"`
	About string `json:"about"`
	wireMessage
	Expect readOutcome `json:"expect"`
}

func TestFixtureOutcomesAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range append(readIndex[outcomeCase](t, "outcomes.json"), readIndex[outcomeCase](t, "operator-outcomes.json")...) {
		m := c.Want.message(t)
		got, err := decodeOutcome(m)
		require.NoError(t, err, c.Name)
		require.Equal(t, c.Kind, got.Kind)
		require.Equal(t, c.Call.key(), got.Key)
		require.Equal(t, c.Call.Nonce, got.Nonce)
		require.Equal(t, c.Call.ResultSubject, m.Subject)
		require.Equal(t, got.MessageID(c.Call.Handover), c.Want.Headers[headerMessageID])
	}
	for _, c := range readIndex[foreignOutcome](t, "outcomes-foreign.json") {
		m := c.message(t)
		o, err := decodeOutcome(m)
		require.NoError(t, err, c.Name)
		got := readOutcome{Kind: o.Kind, Output: o.Output, Error: o.Error, Cause: o.Cause, Reason: o.Reason, AfterMS: o.After.Milliseconds(), Executor: o.Executor}
		if c.Expect.Output != nil {
			require.JSONEq(t, string(c.Expect.Output), string(got.Output), c.Name)
			got.Output = c.Expect.Output
		}
		require.Equal(t, c.Expect, got, c.Name)
		payloadFits(t, "outcome", m.Data, true, c.Name)
	}
	for _, c := range readIndex[refusedCase](t, "invalid-outcomes.json") {
		m := c.message(t)
		_, err := decodeOutcome(m)
		require.Error(t, err, c.Name)
		payloadFits(t, "outcome", m.Data, !c.Schema, c.Name)
	}
}
