package conformance

import (
	"time"

	"github.com/callfan/callfan/pkg/call"
)

func cancelChecks() []check {
	return []check{
		full("cancel/running", cancelRunning),
		full("cancel/before-the-call", cancelBefore),
		full("cancel/of-others", cancelOthers),
	}
}

// stopped checks that a handler of sleep does not go on.
func (t *trial) stopped(p *placed, within time.Duration) {
	if t.until(within, func() bool { return t.count(p, "cancelled") > 0 }) {
		return // it said so
	}
	if t.count(p, "end") > 0 {
		t.failf("the handler ended by itself and did not learn that nobody waits")
	}
}

func cancelRunning(t *trial) {
	p := t.call("sleep", `{"ms":20000}`)
	t.started(p)
	t.cancel(p)
	t.dropped(p, 2*time.Second)
	t.stopped(p, 2*time.Second)
}

// cancelBefore: a notice may overtake its call.
func cancelBefore(t *trial) {
	p := t.draft("sleep", `{"ms":1}`)
	t.stands(p, call.StandingCancelled)
	t.cancel(p)
	pause(t.ctx, 300*time.Millisecond)
	t.publish(p)
	t.dropped(p, patience)
	t.runs(p, 0)
	if t.lookups(p) == 0 {
		t.failf("the executor dropped the call without asking how it stands")
	}
}

func cancelOthers(t *trial) {
	p := t.call("sleep", `{"ms":1500}`)
	t.started(p)
	other := t.draft("sleep", `{}`)
	t.cancel(other)
	half := *p
	half.Key.Call = other.Key.Call
	t.cancel(&half)
	t.must(t.conn.NATS().Publish("fn.cancel.sleep", []byte(`{"session_id":"`+p.Session+`"}`)), "send a notice without ids")
	t.must(t.conn.NATS().Publish("fn.cancel.sleep", []byte(`not JSON`)), "send a notice that is none")
	t.succeeds(p, "slept")
}
