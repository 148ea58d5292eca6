package queue

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/callfan/callfan/pkg/call"
)

// hostileNames are function names that the API may really send.
var hostileNames = map[string]string{
	"65 characters":   strings.Repeat("a", 65),
	"129 bytes":       strings.Repeat("b", 129),
	"10 kB":           strings.Repeat("long ", 2048),
	"spaces":          "get the weather",
	"dots":            "a.b.c",
	"star":            "*",
	"greater":         ">",
	"inner wildcard":  "weather*",
	"CRLF":            "x\r\nPUB fn.call.y 0\r\n\r\n",
	"tab and NUL":     "a\tb\x00c",
	"emoji":           "wetter_☀️",
	"twin, spaces":    "get weather",
	"twin, dots":      "get.weather",
	"twin, dashes":    "get-weather",
	"twin, plain":     "get_weather",
	"looks encoded":   "=" + strings.Repeat("A", 10),
	"looks hashed":    "~abc",
	"quotes":          `say "hi" \ <a&b>`,
	"dollar":          "$JS.API.STREAM.DELETE.FN_CALLS",
	"just underscore": "_",
}

// hostileArguments must come out byte by byte as they went in.
var hostileArguments = map[string]string{
	"beyond 2^53":      `{"n":9007199254740993,"m":18446744073709551616}`,
	"1e400":            `{"n":1e400,"m":-1E-400,"z":0.10}`,
	"duplicate keys":   `{"a":1,"a":2,"A":3}`,
	"markup":           `{"html":"<a&b>","raw":"</script>"}`,
	"1000 levels":      strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
	"NUL escape":       `{"s":"\u0000"}`,
	"lone surrogate":   `{"s":"\ud800","t":"\udc00\ud800"}`,
	"white space":      "{ \"a\" :\t1 ,\n\"b\":[ ]\r\n}",
	"escaped solidus":  `{"u":"http:\/\/x","e":"\u00e9"}`,
	"line separators":  "{\"s\":\"\u2028\u2029\"}",
	"members of ours":  `{"session_id":"evil","name":"evil","arguments":{"call_id":"evil"}}`,
	"brackets inside":  `{"s":"}]{[\"\\"}`,
	"JSON in a string": `"{\"a\":1}"`,
	"null":             `null`,
	"array":            `[]`,
	"empty string":     `""`,
	"empty object":     `{}`,
}

func dispatchOf(function, arguments string) call.Dispatch {
	return call.Dispatch{
		Call:    call.Call{Key: call.Key{Session: "sess_1", Turn: "turn/1 \"x\"", Call: "call_é"}, Function: function, Arguments: []byte(arguments)},
		Attempt: 2, Handover: 3, Nonce: "2-abcdefghijklmnopqrstuv", Partition: 7,
		Timeout: 1500 * time.Millisecond, Deadline: time.UnixMilli(1_800_000_000_123),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Uncertain: true, OnUncertain: call.UncertainVerify,
	}
}

func TestCallMessageKeepsEverything(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	seen := map[string]string{}
	for title, name := range hostileNames {
		d := dispatchOf(name, `{}`)
		m, err := n.encodeCall(&d)
		require.NoError(t, err, title)
		require.Len(t, strings.Split(m.Subject, "."), 3, title)
		require.NotContains(t, m.Subject, "*", title)
		require.NotContains(t, m.Subject, ">", title)
		require.NotRegexp(t, `[\s\x00]`, m.Subject, title)
		require.NotContains(t, seen, m.Subject, "two names on one subject")
		seen[m.Subject] = name
		require.Equal(t, d.MessageID(), header(m.Header, headerMessageID))
		require.Equal(t, d.IdempotencyKey(), header(m.Header, headerIdempotencyKey))
		got, err := n.decodeCall(m)
		require.NoError(t, err, title)
		require.Equal(t, d, got, title)
	}
	for title, arguments := range hostileArguments {
		d := dispatchOf("f", arguments)
		m, err := n.encodeCall(&d)
		require.NoError(t, err, title)
		got, err := n.decodeCall(m)
		require.NoError(t, err, title)
		require.Equal(t, arguments, string(got.Arguments), title)
	}
}

func TestCallMessageRefusesWhatCannotTravel(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	for title, change := range map[string]func(*call.Dispatch){
		"no session":        func(d *call.Dispatch) { d.Session = "" },
		"no turn":           func(d *call.Dispatch) { d.Turn = "" },
		"no call":           func(d *call.Dispatch) { d.Call.Call = "" },
		"no nonce":          func(d *call.Dispatch) { d.Nonce = "" },
		"nonce with CRLF":   func(d *call.Dispatch) { d.Nonce = "1-a\r\nX: y" },
		"attempt 0":         func(d *call.Dispatch) { d.Attempt = 0 },
		"handover 0":        func(d *call.Dispatch) { d.Handover = 0 },
		"other choice":      func(d *call.Dispatch) { d.OnUncertain = "pray" },
		"choice with CRLF":  func(d *call.Dispatch) { d.OnUncertain = "fail\r\nX: y" },
		"broken arguments":  func(d *call.Dispatch) { d.Arguments = []byte(`{"a":`) },
		"smuggling members": func(d *call.Dispatch) { d.Arguments = []byte(`{},"name":"other"`) },
	} {
		d := dispatchOf("f", `{}`)
		change(&d)
		_, err := n.encodeCall(&d)
		require.ErrorIs(t, err, ErrInvalidCall, title)
	}
	d := dispatchOf("", `{}`)
	_, err := n.encodeCall(&d)
	require.ErrorIs(t, err, ErrInvalidFunction)
	d = dispatchOf("f", ``)
	d.Traceparent = "x\r\ny"
	m, err := n.encodeCall(&d)
	require.NoError(t, err)
	require.NotContains(t, m.Header, headerTraceparent)
	require.Contains(t, string(m.Data), `"arguments":{}}`, "missing arguments are an empty object")
}

func TestExecutorsRefuseForeignCalls(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	for title, change := range map[string]func(*nats.Msg){
		"other subject":          func(m *nats.Msg) { m.Subject = "fn.call.other" },
		"other protocol":         func(m *nats.Msg) { m.Header[headerProtocol] = []string{"2"} },
		"no header":              func(m *nats.Msg) { m.Header = nil },
		"no nonce":               func(m *nats.Msg) { delete(m.Header, headerNonce) },
		"foreign result subject": func(m *nats.Msg) { m.Header[headerResultSubject] = []string{"fn.result.charge.p01"} },
		"wild result subject":    func(m *nats.Msg) { m.Header[headerResultSubject] = []string{"fn.result.f.>"} },
		"unknown choice":         func(m *nats.Msg) { m.Header[headerOnUncertain] = []string{"pray"} },
		"attempt zero":           func(m *nats.Msg) { m.Header[headerAttempt] = []string{"0"} },
		"not JSON":               func(m *nats.Msg) { m.Data = m.Data[1:] },
		"no ids":                 func(m *nats.Msg) { m.Data = []byte(`{"name":"f","arguments":{}}`) },
		"other case":             func(m *nats.Msg) { m.Data = []byte(strings.Replace(string(m.Data), "session_id", "Session_ID", 1)) },
		"number as id":           func(m *nats.Msg) { m.Data = []byte(strings.Replace(string(m.Data), `"sess_1"`, `1`, 1)) },
	} {
		d := dispatchOf("f", `{}`)
		m, err := n.encodeCall(&d)
		require.NoError(t, err)
		change(m)
		_, err = n.decodeCall(m)
		require.Error(t, err, title)
	}
}

func TestOutcomeMessageKeepsEverything(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	d := dispatchOf("get weather", `{}`)
	for title, o := range map[string]call.Outcome{
		"string":         {Kind: call.Success, Output: []byte(`"<a&b> \u0000 \ud800"`)},
		"empty string":   {Kind: call.Success, Output: []byte(`""`)},
		"text zero":      {Kind: call.Success, Output: []byte(`"0"`)},
		"null":           {Kind: call.Success, Output: []byte(`null`)},
		"empty array":    {Kind: call.Success, Output: []byte(`[]`)},
		"content parts":  {Kind: call.Success, Output: []byte(`[ {"type":"input_text","text":"1e400"}, {"type":"input_image","image_url":"x"}]`)},
		"invalid UTF-8":  {Kind: call.Success, Output: []byte("\"\xff\"")},
		"failure":        {Kind: call.Failure, Error: "no \"such\"\ncity"},
		"empty failure":  {Kind: call.Failure},
		"timeout":        {Kind: call.Failure, Error: "timed out", Cause: "timeout"},
		"retry":          {Kind: call.Retry, Reason: "503", After: 1500 * time.Millisecond},
		"released":       {Kind: call.Released},
		"uncertain":      {Kind: call.Uncertain, Reason: "the bank says \"later\""},
		"uncertain, why": {Kind: call.Uncertain},
		"deferred":       {Kind: call.Deferred},
		"retry at once":  {Kind: call.Retry, Reason: ""},
		"success no out": {Kind: call.Success},
		"rerun":          {Kind: call.Rerun},
		"who failed":     {Kind: call.Failure, Error: "x", Cause: "timeout", Executor: "host-1/42 \"é\""},
		"who succeeded":  {Kind: call.Success, Output: []byte(`"x"`), Executor: strings.Repeat("n", maxExecutor)},
		"who gave back":  {Kind: call.Released, Executor: "e"},
	} {
		m, err := n.encodeOutcome(&d, &o)
		require.NoError(t, err, title)
		require.Equal(t, "fn.result."+call.Token(d.Function)+".p07", m.Subject)
		got, err := decodeOutcome(m)
		require.NoError(t, err, title)
		o.Key, o.Nonce = d.Key, d.Nonce
		if o.Kind == call.Success && o.Output == nil {
			o.Output = []byte("null")
		}
		require.Equal(t, o, got, title)
	}
}

func TestANameIsMadeToFitAndNeverRefused(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	d := dispatchOf("f", `{}`)
	for name, want := range map[string]string{
		strings.Repeat("é", 100):      strings.Repeat("é", 64),
		"x" + strings.Repeat("é", 64): "x" + strings.Repeat("é", 63),
		"a\r\nb\x00\t\xffc":           "abc",
		"\n":                          "",
	} {
		m, err := n.encodeOutcome(&d, &call.Outcome{Kind: call.Deferred, Executor: name})
		require.NoError(t, err)
		got, err := decodeOutcome(m)
		require.NoError(t, err)
		require.Equal(t, want, got.Executor)
	}
	const ids = `"session_id":"s","turn_id":"t","call_id":"c","nonce":"1-n","released":true`
	for _, malformed := range []string{`5`, `null`, `{"a":1}`, `["x"]`, `"a\nb"`, `"\ud800"`, `"` + strings.Repeat("x", maxExecutor+1) + `"`} {
		got, err := decodeOutcome(&nats.Msg{Data: []byte(`{` + ids + `,"executor":` + malformed + `}`)})
		require.NoError(t, err, malformed)
		require.Empty(t, got.Executor, malformed)
		require.Equal(t, call.Released, got.Kind)
	}
}

func TestCallsExpireSomeTimeAfterTheirDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	require.Equal(t, "150s", expiry(now.Add(90*time.Second), now))
	require.Equal(t, "60s", expiry(now.Add(-time.Hour), now))
	d := dispatchOf("f", `{}`)
	m, err := names{"fn"}.encodeCall(&d)
	require.NoError(t, err)
	require.NotEmpty(t, header(m.Header, headerTTL))
	d.Deadline = time.Time{}
	m, err = names{"fn"}.encodeCall(&d)
	require.NoError(t, err)
	require.NotContains(t, m.Header, headerTTL)
}

func TestTheChoiceForUncertainCallsTravels(t *testing.T) {
	t.Parallel()
	for _, choice := range []call.OnUncertain{"", call.UncertainRerun, call.UncertainVerify, call.UncertainFail, call.UncertainPark} {
		d := dispatchOf("f", `{}`)
		d.OnUncertain = choice
		m, err := names{"fn"}.encodeCall(&d)
		require.NoError(t, err)
		require.Equal(t, string(choice), header(m.Header, headerOnUncertain))
		require.Equal(t, choice != "", len(m.Header[headerOnUncertain]) == 1, "no choice is no header")
		got, err := names{"fn"}.decodeCall(m)
		require.NoError(t, err)
		require.Equal(t, choice, got.OnUncertain)
	}
}

func TestOutcomeIDs(t *testing.T) {
	t.Parallel()
	d := dispatchOf("f", `{}`)
	require.Equal(t, d.Nonce+".success", outcomeID(&d, call.Success))
	require.Equal(t, d.Nonce+".uncertain", outcomeID(&d, call.Uncertain))
	require.Equal(t, d.Nonce+".released.3", outcomeID(&d, call.Released))
	for _, kind := range []call.Kind{call.Success, call.Failure, call.Retry, call.Released, call.Uncertain, call.Deferred, call.Rerun} {
		require.Equal(t, call.Outcome{Nonce: d.Nonce, Kind: kind}.MessageID(3), outcomeID(&d, kind))
	}
}

func TestOutcomesAreReadStrictly(t *testing.T) {
	t.Parallel()
	const ids = `"session_id":"s","turn_id":"t","call_id":"c","nonce":"1-n"`
	for title, rest := range map[string]string{
		"no kind":                 ``,
		"call instead":            `,"type":"function_call","name":"f","arguments":{}`,
		"success and failure":     `,"success":true,"output":"x","error":"y"`,
		"success and retry":       `,"success":true,"output":"x","retry":{"reason":"y"}`,
		"released and deferred":   `,"released":true,"deferred":true`,
		"released false":          `,"released":false`,
		"rerun false":             `,"rerun":false`,
		"rerun and released":      `,"rerun":true,"released":true`,
		"rerun with reason":       `,"rerun":{"reason":"x"}`,
		"only a name":             `,"executor":"x"`,
		"two names":               `,"executor":"x","executor":"y","released":true`,
		"success without output":  `,"success":true`,
		"failure without error":   `,"success":false`,
		"failure with output":     `,"success":false,"error":"x","output":"y"`,
		"success is text":         `,"success":"true","output":"x"`,
		"success in capitals":     `,"Success":true,"Output":"x"`,
		"output object":           `,"success":true,"output":{"a":1}`,
		"output number":           `,"success":true,"output":0`,
		"output false":            `,"success":true,"output":false`,
		"error null":              `,"success":false,"error":null`,
		"cause on success":        `,"success":true,"output":"x","cause":"timeout"`,
		"cause with spaces":       `,"success":false,"error":"x","cause":"time out"`,
		"cause too long":          `,"success":false,"error":"x","cause":"` + strings.Repeat("a", 33) + `"`,
		"retry is text":           `,"retry":"now"`,
		"retry after text":        `,"retry":{"reason":"x","after_ms":"5"}`,
		"retry after negative":    `,"retry":{"reason":"x","after_ms":-1}`,
		"retry after fraction":    `,"retry":{"reason":"x","after_ms":1.5}`,
		"retry after a year":      `,"retry":{"reason":"x","after_ms":31536000000}`,
		"retry reason huge":       `,"retry":{"reason":"` + strings.Repeat("x", maxReason+1) + `"}`,
		"uncertain is true":       `,"uncertain":true`,
		"uncertain reason number": `,"uncertain":{"reason":5}`,
		"uncertain reason null":   `,"uncertain":{"reason":null}`,
		"uncertain reason huge":   `,"uncertain":{"reason":"` + strings.Repeat("x", maxReason+1) + `"}`,
		"uncertain and retry":     `,"uncertain":{"reason":"x"},"retry":{"reason":"x"}`,
		"uncertain with cause":    `,"uncertain":{"reason":"x"},"cause":"timeout"`,
		"uncertain and failure":   `,"uncertain":{"reason":"x"},"success":false,"error":"x"`,
		"uncertain twice":         `,"uncertain":{"reason":"x"},"uncertain":{"reason":"y"}`,
		"success twice":           `,"success":true,"output":"x","success":true`,
		"session twice":           `,"session_id":"other","released":true`,
		"escaped name comes also": `,"\u0073ession_id":"other","released":true`,
	} {
		_, err := decodeOutcome(&nats.Msg{Data: []byte("{" + ids + rest + "}")})
		require.Error(t, err, title)
	}
	for title, body := range map[string]string{
		"empty":        ``,
		"array":        `[]`,
		"text":         `"x"`,
		"trailing":     `{` + ids + `,"released":true} x`,
		"no nonce":     `{"session_id":"s","turn_id":"t","call_id":"c","released":true}`,
		"empty id":     `{"session_id":"","turn_id":"t","call_id":"c","nonce":"n","released":true}`,
		"huge id":      `{"session_id":"` + strings.Repeat("s", maxID+1) + `","turn_id":"t","call_id":"c","nonce":"n","released":true}`,
		"null id":      `{"session_id":null,"turn_id":"t","call_id":"c","nonce":"n","released":true}`,
		"PubAck":       `{"stream":"FN_CALLS","seq":1}`,
		"API error":    `{"type":"io.nats.jetstream.api.v1.consumer_info_response","error":{"code":404}}`,
		"20,000 deep":  strings.Repeat("[", 20000),
		"endless text": `{"a":"`,
	} {
		_, err := decodeOutcome(&nats.Msg{Data: []byte(body)})
		require.Error(t, err, title)
	}
	got, err := decodeOutcome(&nats.Msg{Data: []byte(` { ` + ids + ` , "x_new" : {"a":[1,"}"]} , "released" : true } `)})
	require.NoError(t, err, "unknown members and white space are fine")
	require.Equal(t, call.Released, got.Kind)
	_, err = decodeOutcome(&nats.Msg{Header: nats.Header{headerProtocol: {"2"}}, Data: []byte(`{` + ids + `,"released":true}`)})
	require.ErrorContains(t, err, "protocol")
}

func TestMembersAgreeWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOf(rapid.String(), rapid.Custom(func(t *rapid.T) any {
			return rapid.OneOf(
				rapid.Map(rapid.String(), func(s string) any { return s }),
				rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }),
				rapid.Map(rapid.SliceOf(rapid.String()), func(s []string) any { return s }),
				rapid.Map(rapid.MapOf(rapid.String(), rapid.Bool()), func(m map[string]bool) any { return m }),
				rapid.Just[any](nil),
			).Draw(t, "value")
		})).Draw(t, "object")
		body, err := json.MarshalIndent(want, " ", "\t")
		require.NoError(t, err)
		var raw map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &raw))
		got := map[string]json.RawMessage{}
		require.NoError(t, members(body, func(name, value []byte) error {
			got[string(name)] = value
			return nil
		}))
		require.Equal(t, raw, got)
	})
}

func FuzzDecodeOutcome(f *testing.F) {
	f.Add([]byte(`{"session_id":"s","turn_id":"t","call_id":"c","nonce":"n","success":true,"output":"x"}`))
	f.Add([]byte(`{"a":"\\\"}","b":[{"c":{}}],"retry":{"reason":"x","after_ms":1}}`))
	f.Add([]byte(`{"session_id":"s","turn_id":"t","call_id":"c","nonce":"n","uncertain":{"reason":"x"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := decodeOutcome(&nats.Msg{Data: body})
		if err == nil && o.Kind == call.Success && !json.Valid(o.Output) {
			t.Fatalf("output is not JSON: %q", o.Output)
		}
		if err == nil {
			d := dispatchOf("f", `{}`)
			d.Key, d.Nonce = o.Key, o.Nonce
			if !validNonce(d.Nonce) {
				return
			}
			m, err := names{"fn"}.encodeOutcome(&d, &o)
			if err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			if again, err := decodeOutcome(m); err != nil || again.Kind != o.Kind {
				t.Fatalf("what was written reads otherwise: %v %v %v", o, again, err)
			}
		}
		_ = decodeCallPayload(body, &call.Call{})
	})
}

func TestDeliveriesAreReadFromBothAckForms(t *testing.T) {
	t.Parallel()
	require.Equal(t, 3, deliveries("$JS.ACK.FN_CALLS.pool_x.3.10.11.1700000000.5"))
	require.Equal(t, 4, deliveries("$JS.ACK.hub.ACCHASH.FN_CALLS.pool_x.4.10.11.1700000000.5.token"))
	require.Equal(t, 1, deliveries("nonsense"))
}

func TestResultSubjects(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	for _, partition := range []int{0, 9, 10, 99, 100, 1023} {
		token, got, ok := n.parseResult(n.result("=Kg", partition))
		require.True(t, ok)
		require.Equal(t, "=Kg", token)
		require.Equal(t, partition, got)
	}
	for _, subject := range []string{"fn.result.f", "fn.result.f.p1", "fn.result.f.p001", "fn.result..p01", "fn.result.f.p01.x", "fn.call.f.p01", "gn.result.f.p01", "fn.result.f.p-1"} {
		_, _, ok := n.parseResult(subject)
		require.False(t, ok, subject)
	}
}

func TestEnvelopeSizeIsWhatTheClientSends(t *testing.T) {
	t.Parallel()
	d := dispatchOf("f", `{}`)
	m, err := names{"fn"}.encodeCall(&d)
	require.NoError(t, err)
	require.EqualValues(t, m.Size()-len(m.Subject)-len(m.Reply), envelopeSize(m))
}
