package queue

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// callCase is a call message and what an executor has to read from it.
type callCase struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
	wireMessage
	Expect readCall `json:"expect"`
}

// readCall is a call as an executor understands it; null is what is not there.
type readCall struct {
	Session        string  `json:"session_id"`
	Turn           string  `json:"turn_id"`
	Call           string  `json:"call_id"`
	Function       string  `json:"function"`
	Arguments      string  `json:"arguments"`
	Attempt        int     `json:"attempt"`
	Handover       int     `json:"handover"`
	Nonce          string  `json:"nonce"`
	ResultSubject  string  `json:"result_subject"`
	IdempotencyKey string  `json:"idempotency_key"`
	TimeoutMS      *int64  `json:"timeout_ms"`
	DeadlineMS     *int64  `json:"deadline_ms"`
	Traceparent    *string `json:"traceparent"`
	Uncertain      bool    `json:"uncertain"`
	OnUncertain    *string `json:"on_uncertain"`
}

// fixtureTTL stands for the expiry, which depends on the time of the publication.
const fixtureTTL = "95s"

// fixtureDeadline is in the year 2100.
var fixtureDeadline = time.UnixMilli(4_102_444_800_123)

func fixtureCall(function, arguments string) call.Dispatch {
	return call.Dispatch{
		Call: call.Call{
			Key:      call.Key{Session: "sess_1", Turn: "turn_1", Call: "call_1"},
			Function: function, Arguments: []byte(arguments),
		},
		Attempt: 1, Handover: 1, Partition: 7, Timeout: 30 * time.Second, Deadline: fixtureDeadline, OnUncertain: call.UncertainFail,
	}
}

// fixtureArguments are arguments that come out otherwise when they are decoded and written again.
var fixtureArguments = []struct{ name, about, arguments string }{
	{"arguments-empty", "an empty object", `{}`},
	{"arguments-integers", "integers that a double does not hold", `{"n":9007199254740993,"m":18446744073709551616,"k":-9223372036854775809}`},
	{"arguments-huge-number", "numbers beyond any double", `{"n":1e400,"m":-1E-400,"z":0.10}`},
	{"arguments-negative-zero", "the sign and the form of a zero", `{"a":-0,"b":-0.0,"c":0e0,"d":1.0}`},
	{"arguments-100-digits", "a number of a hundred digits", `{"n":` + strings.Repeat("1234567890", 10) + `}`},
	{"arguments-duplicate-keys", "a member that comes twice", `{"a":1,"a":2,"A":3}`},
	{"arguments-key-order", "members that are not in alphabetical order, and numeric names", `{"z":1,"a":2,"10":3,"9":4,"__proto__":{"x":1},"constructor":5}`},
	{"arguments-deep", "1,000 levels; the payload has one more", strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)},
	{"arguments-megabyte", "a text of one megabyte", `{"s":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`},
	{"arguments-unicode", "two-, three- and four-byte characters, written as they are", `{"s":"é 天 😀 e` + "\u0301" + `","天":"\u00e9"}`},
	{"arguments-surrogates", "surrogate escapes: a pair, and some without a partner", `{"p":"\ud83d\ude00","s":"\ud800","t":"\udc00\ud800"}`},
	{"arguments-nul", "an escaped NUL, and other control characters", `{"s":"a\u0000b\u001f\u007f"}`},
	{"arguments-white-space", "white space between all tokens", "{ \"a\" :\t1 ,\n\"b\":[ ]\r\n, \"c\" : { } }"},
	{"arguments-line-separators", "U+2028 and U+2029 as they are", "{\"s\":\"\u2028\u2029\"}"},
	{"arguments-escapes", "escapes that are not needed", `{"u":"http:\/\/x","e":"\u00e9","a":"\u0041"}`},
	{"arguments-markup", "characters that some encoders escape", `{"html":"<a&b>","raw":"</script>"}`},
	{"arguments-brackets", "brackets and quotes inside of a text", `{"s":"}]{[\"\\"}`},
	{"arguments-like-ours", "members that have the names of the payload's own", `{"session_id":"evil","name":"evil","arguments":{"call_id":"evil"}}`},
}

// generatedCalls are the calls of which the encoder makes messages.
func generatedCalls() (cases []callCase, dispatches []call.Dispatch) {
	add := func(name, about string, d call.Dispatch) {
		d.Nonce = cmp.Or(d.Nonce, fixtureNonces.For(d.Key, call.Token(d.Function), d.Attempt))
		cases, dispatches = append(cases, callCase{Name: name, About: about}), append(dispatches, d)
	}
	plain := func(change func(*call.Dispatch)) call.Dispatch {
		d := fixtureCall("get_customer", `{"customer_id":"123"}`)
		change(&d)
		return d
	}
	add("plain", "what an ordinary call looks like", plain(func(*call.Dispatch) {}))
	add("least", "only the headers that are always there", plain(func(d *call.Dispatch) { d.Timeout, d.Deadline, d.OnUncertain = 0, time.Time{}, "" }))
	add("all-headers", "every header, a later attempt and hand-over", plain(func(d *call.Dispatch) {
		d.Attempt, d.Handover, d.Partition, d.Uncertain, d.OnUncertain = 3, 2, 1023, true, call.UncertainVerify
		d.Timeout, d.Traceparent = 1500*time.Millisecond, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	}))
	add("partition-0", "", plain(func(d *call.Dispatch) { d.Partition = 0 }))
	for _, choice := range []call.OnUncertain{call.UncertainRerun, call.UncertainVerify, call.UncertainFail, call.UncertainPark} {
		add("on-uncertain-"+string(choice), "", plain(func(d *call.Dispatch) { d.OnUncertain = choice }))
	}
	add("hostile-ids", "ids that need escapes in JSON, in a header and in a path", plain(func(d *call.Dispatch) {
		d.Key = call.Key{Session: "sess/1 é%2F", Turn: "turn \"1\"\\\r\n", Call: "call_😀,\"arguments\":{}"}
	}))
	for _, f := range [][2]string{
		{"name-dots", "ns.get.customer"},
		{"name-wildcard", ">"},
		{"name-line-break", "x\r\nPUB fn.call.y 0\r\n\r\n"},
		{"name-emoji", "wetter_☀️"},
		{"name-long", strings.Repeat("n", 129)},
		{"name-quotes", `f","arguments":{"a":1},"x":"`},
	} {
		add(f[0], "a function's name that is no token", fixtureCall(f[1], `{"a":1}`))
	}
	for _, a := range fixtureArguments {
		add(a.name, a.about, fixtureCall("get_customer", a.arguments))
	}
	return cases, dispatches
}

func TestFixtureCalls(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	cases, dispatches := generatedCalls()
	for i, d := range dispatches {
		c := &cases[i]
		m, err := n.encodeCall(&d)
		require.NoError(t, err, c.Name)
		if m.Header[headerTTL] != nil {
			m.Header[headerTTL] = []string{fixtureTTL}
		}
		c.wireMessage = goldenMessage(t, m, "calls/"+c.Name+".payload")
		c.Expect = expected(d, header(m.Header, headerResultSubject), "calls/"+c.Name+".arguments")
		golden(t, c.Expect.Arguments, d.Arguments)
		// docs/protocol.md promises where the arguments are, for executors that cannot keep bytes while they parse.
		_, rest, found := strings.Cut(string(m.Data), `,"arguments":`)
		require.True(t, found)
		require.Equal(t, string(d.Arguments)+"}", rest, c.Name)
	}
	goldenIndex(t, "calls.json", "Call messages as dispatchers write them, and what an executor reads from them.", cases)
}

// expected is what an executor has to read of a hand-over.
func expected(d call.Dispatch, resultSubject, arguments string) readCall {
	r := readCall{
		Session: d.Session, Turn: d.Turn, Call: d.Call.Call, Function: d.Function, Arguments: arguments,
		Attempt: d.Attempt, Handover: d.Handover, Nonce: d.Nonce, ResultSubject: resultSubject,
		IdempotencyKey: d.IdempotencyKey(), Uncertain: d.Uncertain,
	}
	if d.Timeout > 0 {
		r.TimeoutMS = new(d.Timeout.Milliseconds())
	}
	if !d.Deadline.IsZero() {
		r.DeadlineMS = new(d.Deadline.UnixMilli())
	}
	if d.Traceparent != "" {
		r.Traceparent = &d.Traceparent
	}
	if d.OnUncertain != "" {
		r.OnUncertain = new(string(d.OnUncertain))
	}
	return r
}

func TestFixtureCallsAreRead(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	for _, file := range []string{"calls.json", "calls-foreign.json"} {
		for _, c := range readIndex[callCase](t, file) {
			m := c.message(t)
			d, err := n.decodeCall(m)
			require.NoError(t, err, c.Name)
			got := expected(d, n.result(call.Token(d.Function), d.Partition), c.Expect.Arguments)
			require.Equal(t, header(m.Header, headerIdempotencyKey), got.IdempotencyKey, c.Name)
			require.Equal(t, c.Expect, got, c.Name)
			require.Equal(t, string(fixture(t, c.Expect.Arguments)), string(d.Arguments), c.Name)
			payloadFits(t, "call", m.Data, true, c.Name)
		}
	}
}

// refusedCase is a message that must not be taken.
type refusedCase struct {
	Name  string `json:"name"`
	About string `json:"about"`
	wireMessage
	// Schema says that the JSON Schema refuses the payload as well; a schema sees neither
	// headers nor members that come twice.
	Schema bool `json:"schema_refuses"`
}

func TestFixtureCallsAreRefused(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	for _, c := range readIndex[refusedCase](t, "invalid-calls.json") {
		m := c.message(t)
		_, err := n.decodeCall(m)
		require.Error(t, err, c.Name)
		payloadFits(t, "call", m.Data, !c.Schema, c.Name)
	}
}
