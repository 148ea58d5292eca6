package conformance

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

func callChecks() []check {
	return []check{
		core("calls/ids", callIDs),
		core("calls/idempotency-key", callIdempotencyKey),
		full("calls/deadline", callDeadline),
		full("calls/traceparent", callTraceparent),
		core("calls/event-log", callEvents),
		core("calls/unknown-headers-and-members", callUnknown),
		core("calls/other-protocol", callOtherProtocol),
		core("calls/invalid", callInvalid),
		full("calls/delivered-again-while-running", callTwice),
		full("calls/hostile-ids", callHostileIDs),
		full("logs/no-secrets", callSecrets),
	}
}

// facts are what the function key says about its call.
type facts struct {
	IdempotencyKey string `json:"idempotency_key"`
	Attempt        int    `json:"attempt"`
	SessionID      string `json:"session_id"`
	TurnID         string `json:"turn_id"`
	CallID         string `json:"call_id"`
	Function       string `json:"function"`
	DeadlineMS     int64  `json:"deadline_ms"`
	Traceparent    string `json:"traceparent"`
}

func (t *trial) facts(o call.Outcome) facts {
	var f facts
	text := t.text(o)
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.failf("the output of key is %s: %w", shorten(text), err)
	}
	return f
}

func callIDs(t *trial) {
	p := t.call("key", `{}`)
	f := t.facts(t.only(p))
	if f.SessionID != p.Session || f.TurnID != p.Turn || f.CallID != p.Key.Call || f.Function != "key" || f.Attempt != 1 {
		t.failf("the handler was told %+v; want the ids %s, function key, attempt 1", f, p.Key)
	}
}

func callIdempotencyKey(t *trial) {
	first := t.call("key", `{}`)
	one := t.facts(t.only(first))
	second := t.call("key", `{}`, t.again(first))
	t.eventually(patience, func() bool { return len(t.reported(first)) == 2 }, "no outcome of attempt 2 arrived")
	two := t.facts(t.reported(first)[1].Outcome)
	switch {
	case one.IdempotencyKey != first.IdempotencyKey():
		t.failf("the idempotency key is %q; want %q, that of the header", one.IdempotencyKey, first.IdempotencyKey())
	case two.IdempotencyKey != one.IdempotencyKey:
		t.failf("the idempotency key is %q at attempt 1 and %q at attempt 2; want the same", one.IdempotencyKey, two.IdempotencyKey)
	case two.Attempt != second.Attempt:
		t.failf("the handler was told attempt %d; want 2", two.Attempt)
	}
}

func callDeadline(t *trial) {
	const slack = 3 * time.Second
	p := t.call("key", `{}`, timeout(40*time.Second), deadline(time.Minute))
	f := t.facts(t.only(p))
	want := p.published.Add(40 * time.Second)
	if off := time.UnixMilli(f.DeadlineMS).Sub(want); off < -slack || off > slack+patience {
		t.failf("deadline_ms is %d; want the handler's begin plus the timeout of 40 s, about %d", f.DeadlineMS, want.UnixMilli())
	}
	p = t.call("key", `{}`, timeout(time.Hour), deadline(time.Minute))
	f = t.facts(t.only(p))
	if off := time.UnixMilli(f.DeadlineMS).Sub(p.Deadline); off < -slack || off > slack {
		t.failf("deadline_ms is %d; want the call's deadline, %d, which is sooner than its timeout", f.DeadlineMS, p.Deadline.UnixMilli())
	}
}

func callTraceparent(t *trial) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	f := t.facts(t.only(t.call("key", `{}`, traceparent("00-"+trace+"-00f067aa0ba902b7-01"))))
	if parts := strings.Split(f.Traceparent, "-"); len(parts) != 4 || parts[1] != trace {
		t.failf("the handler was told the traceparent %q; want one of the trace %s", f.Traceparent, trace)
	}
}

// callEvents holds the conformance executor itself to its document.
func callEvents(t *trial) {
	p := t.call("sleep", `{"ms":50}`)
	t.succeeds(p, "slept")
	events := t.events(p.Key.Call)
	if len(events) != 2 || events[0].Event != "start" || events[1].Event != "end" {
		t.failf("the events of a call of sleep are %+v; want start and end", events)
	}
	for _, e := range events {
		if e.Function != "sleep" || e.Attempt != 1 || e.IdempotencyKey != p.IdempotencyKey() || e.PID <= 0 {
			t.failf("the event %+v does not describe the call", e)
		}
		if off := time.Since(time.UnixMilli(e.AtMS)); off < -time.Second || off > patience {
			t.failf("the event's at_ms is %d, %s ago; want the time of the write in milliseconds", e.AtMS, off)
		}
	}
}

func callUnknown(t *trial) {
	p := t.draft("echo", `{"a":1}`)
	t.publishRaw(p, func(m *nats.Msg) {
		m.Header["Fn-From-The-Future"] = []string{"1", "2"}
		m.Header["fn-attempt"] = []string{"77"}
		m.Data = []byte(strings.Replace(string(m.Data), `{"type":"function_call",`, `{"type":"function_call","namespace":null,"priority":3,`, 1))
	})
	t.succeeds(p, `{"a":1}`)
}

func callOtherProtocol(t *trial) {
	t.refused(func(m *nats.Msg) { m.Header["Fn-Protocol"] = []string{"2"} }, "of protocol 2")
}

// refused checks that a message is neither run nor answered nor acknowledged.
func (t *trial) refused(change func(*nats.Msg), what string) {
	p := t.draft("sleep", `{"ms":1}`)
	t.publishRaw(p, change)
	t.never(1500*time.Millisecond, func() bool { return t.count(p, "start") > 0 || len(t.reported(p)) > 0 || t.malformed(p) != nil },
		"a message %s was run or answered", what)
	if len(t.sent(p, "+ACK")) > 0 || !t.queued(p) {
		t.failf("a message %s was removed at its first delivery; a newer executor may understand it", what)
	}
}

func callInvalid(t *trial) {
	for what, change := range map[string]func(*nats.Msg){
		"without a nonce":               func(m *nats.Msg) { delete(m.Header, "Fn-Nonce") },
		"with an unknown on_uncertain":  func(m *nats.Msg) { m.Header["Fn-On-Uncertain"] = []string{"guess"} },
		"with another's result subject": func(m *nats.Msg) { m.Header["Fn-Result-Subject"] = []string{"fn.result.echo.p00"} },
		"for a function of another subject": func(m *nats.Msg) {
			m.Data = []byte(strings.Replace(string(m.Data), `"name":"sleep"`, `"name":"echo"`, 1))
		},
		"without a session": func(m *nats.Msg) { m.Data = []byte(strings.Replace(string(m.Data), `"session_id"`, `"session"`, 1)) },
		"that is cut":       func(m *nats.Msg) { m.Data = m.Data[:len(m.Data)-2] },
	} {
		p := t.draft("sleep", `{"ms":1}`)
		t.publishRaw(p, change)
		t.never(300*time.Millisecond, func() bool { return t.count(p, "start") > 0 || len(t.reported(p)) > 0 || t.malformed(p) != nil },
			"a message %s was run or answered", what)
		if !t.queued(p) {
			t.failf("a message %s was removed at its first delivery", what)
		}
	}
	t.succeeds(t.call("echo", `{"a":1}`), `{"a":1}`)
}

// callTwice has the server deliver a call again that the executor is running.
func callTwice(t *trial) {
	p := t.call("sleep", `{"ms":4000}`)
	t.started(p)
	t.eventually(patience, func() bool { return len(t.sent(p, "+WPI")) > 0 }, "the lease was not extended")
	t.must(t.conn.NATS().Publish(t.sent(p, "+WPI")[0].subject, []byte("-NAK")), "force a second delivery")
	t.eventually(patience, func() bool { return len(t.reported(p)) > 0 }, "no outcome of sleep arrived")
	t.never(300*time.Millisecond, func() bool { return len(t.reported(p)) > 1 }, "two outcomes of one hand-over arrived")
	t.is(t.outcome(p), "slept")
	t.runs(p, 1)
	t.eventually(patience, func() bool { return !t.queued(p) }, "the call is still in the queue")
}

// callSecrets: arguments, outputs and nonces are nobody's business but the model's.
func callSecrets(t *trial) {
	p := t.call("echo", `{"secret":"never-log-7f3a"}`)
	t.succeeds(p, `{"secret":"never-log-7f3a"}`)
	again := t.call("echo", `{"secret":"never-log-7f3a"}`, uncertain())
	t.succeeds(again, `{"secret":"never-log-7f3a"}`)
	pause(t.ctx, settleTime)
	text := t.latest().text()
	for what, secret := range map[string]string{"arguments or an output": "never-log-7f3a", "a nonce": p.Nonce, "the nonce of a call that may have run": again.Nonce} {
		if strings.Contains(text, secret) {
			t.failf("the executor logged %s", what)
		}
	}
}

func callHostileIDs(t *trial) {
	p := t.draft("key", `{}`, func(c *call.Dispatch) {
		c.Session, c.Turn, c.Key.Call = "sess/ \"☂\" "+c.Session, "turn.*.> %2F", "call\\\n<&>"+c.Key.Call
	})
	t.publish(p)
	f := t.facts(t.only(p))
	if f.SessionID != p.Session || f.TurnID != p.Turn || f.CallID != p.Key.Call {
		t.failf("the handler was told the ids %q, %q, %q; want %q, %q, %q", f.SessionID, f.TurnID, f.CallID, p.Session, p.Turn, p.Key.Call)
	}
}
