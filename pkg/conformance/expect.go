package conformance

import (
	"encoding/json"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// outcome waits for the call's first outcome and checks what every outcome must have.
func (t *trial) outcome(p *placed, within ...time.Duration) call.Outcome {
	limit := patience
	if len(within) > 0 {
		limit = within[0]
	}
	var got []call.Delivered
	t.eventually(limit, func() bool { got = t.reported(p); return len(got) > 0 || t.malformed(p) != nil },
		"no outcome of %s arrived", p.Function)
	if len(got) == 0 {
		bad := t.malformed(p)
		t.failf("the outcome of %s is not valid: %w: %s", p.Function, bad.Invalid, shorten(string(bad.Body)))
	}
	d := got[0]
	o := d.Outcome
	switch {
	case o.Nonce != p.Nonce:
		t.failf("the outcome has the nonce %q; want %q, that of the call", o.Nonce, p.Nonce)
	case d.Token != call.Token(p.Function):
		t.failf("the outcome came on %s; want the call's result subject", d.Subject)
	case d.ID != o.MessageID(p.Handover):
		t.failf("the outcome has the Nats-Msg-Id %q; want %q", d.ID, o.MessageID(p.Handover))
	}
	return o
}

// only waits for the outcome and for the ack after it, and checks that there is no other.
func (t *trial) only(p *placed, within ...time.Duration) call.Outcome {
	o := t.outcome(p, within...)
	t.acked(p)
	if n := len(t.reported(p)); n != 1 {
		t.failf("%d outcomes of one call arrived; want 1", n)
	}
	if len(t.sent(p, "-NAK")) > 0 {
		t.failf("the executor sent -NAK, so that delivery counts say nothing any more")
	}
	return o
}

// acked waits until the call left the queue by an ack.
func (t *trial) acked(p *placed) {
	t.eventually(patience, func() bool { return len(t.sent(p, "+ACK")) > 0 }, "%s was not acknowledged", p.Function)
	t.eventually(patience, func() bool { return !t.queued(p) }, "%s was acknowledged and is still in the queue", p.Function)
}

// dropped waits for an ack without an outcome.
func (t *trial) dropped(p *placed, within time.Duration) {
	t.eventually(within, func() bool { return len(t.sent(p, "+ACK")) > 0 || len(t.reported(p)) > 0 }, "%s was not dropped", p.Function)
	t.never(200*time.Millisecond, func() bool { return len(t.reported(p)) > 0 }, "an outcome of %s was reported, and nobody waits for one", p.Function)
	t.acked(p)
}

// succeeds waits for a success with that text.
func (t *trial) succeeds(p *placed, text string, within ...time.Duration) {
	t.is(t.only(p, within...), text)
}

func (t *trial) is(o call.Outcome, text string) {
	if got := t.text(o); got != text {
		t.failf("the output is %s; want %s", shorten(got), shorten(text))
	}
}

// text is the output of a success, which must be a text.
func (t *trial) text(o call.Outcome) string {
	if o.Kind != call.Success {
		t.failf("the outcome is %s; want a success", describe(o))
	}
	var text *string
	if err := json.Unmarshal(o.Output, &text); err != nil || text == nil {
		t.failf("the output on the wire is %s; want a JSON string", shorten(string(o.Output)))
	}
	return *text
}

// fails waits for a failure with that cause; an empty one means none.
func (t *trial) fails(p *placed, cause string, within ...time.Duration) call.Outcome {
	o := t.only(p, within...)
	if o.Kind != call.Failure || o.Cause != cause {
		t.failf("the outcome is %s; want a failure with the cause %q", describe(o), cause)
	}
	if o.Error == "" {
		t.failf("the failure has no text")
	}
	return o
}

// kind waits for an outcome of that kind.
func (t *trial) kind(p *placed, kind call.Kind, within ...time.Duration) call.Outcome {
	o := t.only(p, within...)
	if o.Kind != kind {
		t.failf("the outcome is %s; want %s", describe(o), kind)
	}
	return o
}

func describe(o call.Outcome) string {
	switch o.Kind {
	case call.Success:
		return "a success: " + shorten(string(o.Output))
	case call.Failure:
		return "a failure with the cause " + o.Cause + ": " + shorten(o.Error)
	default:
		return string(o.Kind) + ": " + shorten(o.Reason)
	}
}

func shorten(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
