package conformance

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// redelivered are calls that were delivered before the executor gets them.
type redelivered struct {
	t     *trial
	calls map[string]*placed
	times map[uint64]int
	fresh []*placed
}

// add makes a call that is to have been delivered so often.
func (r *redelivered) add(name string, deliveries int, p *placed) {
	r.calls[name] = p
	if deliveries == 0 {
		r.fresh = append(r.fresh, p)
		return
	}
	r.t.publish(p)
	r.times[p.Sequence] = deliveries
}

// redeliveredScene delivers calls to nobody, as if to executors that were lost, and then
// starts an executor.
func redeliveredScene() scene {
	var r redelivered
	return scene{
		name:   "redelivered",
		config: rigConfig{ackWait: shortLease, concurrency: 32},
		act: func(t *trial) {
			t.serve()
			p := t.start()
			pause(t.ctx, settleTime)
			t.stop(p) // in order, although there is nothing to do
			r = redelivered{t: t, calls: map[string]*placed{}, times: map[uint64]int{}}
			r.addCore()
			if t.play.full {
				r.addFull()
			}
			t.deliverToNobody(r.times)
			for _, p := range r.fresh {
				t.publish(p)
			}
			t.start()
		},
		checks: append(redeliveredCore(&r), redeliveredFull(&r)...),
	}
}

func (r *redelivered) addCore() {
	t := r.t
	r.add("pending", 1, t.draft("sleep", `{"ms":10}`))
	r.add("unknown", 1, t.draft("sleep", `{"ms":10}`))
	t.stands(r.calls["unknown"], call.StandingUnknown)
	answered, cancelled := t.draft("sleep", `{"ms":10}`), t.draft("sleep", `{"ms":10}`)
	t.stands(answered, call.StandingAnswered)
	t.stands(cancelled, call.StandingCancelled)
	r.add("answered", 1, answered)
	r.add("cancelled", 2, cancelled)
	r.add("blind", 1, t.draft("pay_blind", `{}`))
	r.add("flag", 0, t.draft("pay_blind", `{}`, uncertain()))
	r.add("flag-rerun", 0, t.draft("sleep", `{"ms":10}`, uncertain()))
	r.add("told-fail", 1, t.draft("sleep", `{"ms":10}`, choice(call.UncertainFail)))
	r.add("told-rerun", 1, t.draft("pay_blind", `{}`, choice(call.UncertainRerun)))
	r.add("told-verify", 1, t.draft("pay_blind", `{}`, choice(call.UncertainVerify)))
	r.add("told-park", 1, t.draft("pay_blind", `{}`, choice(call.UncertainPark)))
	later := t.draft("sleep", `{"ms":10}`)
	t.stands(later, standsLater)
	r.add("later", 1, later)
	r.add("crashing", 3, t.draft("sleep", `{"ms":10}`))
	r.add("crashing-blind", 3, t.draft("pay_blind", `{}`))
	r.add("before-the-limit", 2, t.draft("sleep", `{"ms":10}`))
}

func redeliveredCore(r *redelivered) []check {
	return []check{
		core("stop/idle", func(*trial) {}),
		core("redelivery/looked-up-and-run", func(t *trial) {
			for _, name := range []string{"pending", "unknown", "flag-rerun", "before-the-limit"} {
				p := r.calls[name]
				t.succeeds(p, "slept")
				t.runs(p, 1)
				t.lookedUp(p)
			}
		}),
		core("redelivery/answered", func(t *trial) { t.leftAlone(r.calls["answered"]) }),
		core("redelivery/cancelled", func(t *trial) { t.leftAlone(r.calls["cancelled"]) }),
		core("redelivery/unknown-outcome", func(t *trial) {
			for _, name := range []string{"blind", "flag"} {
				p := r.calls[name]
				if o := t.fails(p, call.ReasonUnknownOutcome); !strings.Contains(o.Error, "unknown") {
					t.failf("the text for the model is %q; want one that says that the outcome is unknown", o.Error)
				}
				t.runs(p, 0)
				t.lookedUp(p)
			}
		}),
		core("redelivery/choice-of-the-dispatcher", func(t *trial) {
			t.fails(r.calls["told-fail"], call.ReasonUnknownOutcome)
			t.runs(r.calls["told-fail"], 0)
			t.succeeds(r.calls["told-rerun"], "paid")
		}),
		core("verify/without-a-handler", func(t *trial) {
			for _, name := range []string{"told-verify", "told-park"} {
				t.kind(r.calls[name], call.Uncertain)
				t.runs(r.calls[name], 0)
			}
		}),
		core("redelivery/asks-again", func(t *trial) {
			p := r.calls["later"]
			t.succeeds(p, "slept")
			if n := t.lookups(p); n < failedLookups+1 {
				t.failf("the executor asked %d times and ran the call without an answer", n)
			}
		}),
		core("redelivery/crash-limit", func(t *trial) {
			t.fails(r.calls["crashing"], call.ReasonCrashed)
			t.runs(r.calls["crashing"], 0)
			if o := t.fails(r.calls["crashing-blind"], call.ReasonCrashed); !strings.Contains(o.Error, "unknown") {
				t.failf("the text for the model is %q; want one that says that the outcome is unknown", o.Error)
			}
			t.runs(r.calls["crashing-blind"], 0)
		}),
	}
}

// leftAlone checks that a call which nobody waits for was dropped.
func (t *trial) leftAlone(p *placed) {
	t.dropped(p, patience)
	t.runs(p, 0)
	t.lookedUp(p)
}

func (r *redelivered) addFull() {
	t := r.t
	r.add("done", 1, t.draft("pay", `{"verdict":"done"}`))
	r.add("not-done", 1, t.draft("pay", `{"verdict":"not_done"}`))
	r.add("cannot-tell", 1, t.draft("pay", `{"verdict":"cannot_tell"}`))
	r.add("verify-crashes", 1, t.draft("pay", `{"verdict":"crash"}`))
	r.add("told-park-verified", 1, t.draft("pay", `{"verdict":"done"}`, choice(call.UncertainPark)))
	r.add("park", 1, t.draft("pay_park", `{}`))
	r.add("crashing-park", 3, t.draft("pay_park", `{}`))
	r.add("crashing-verify", 3, t.draft("pay", `{"verdict":"done"}`))
	invalid := t.draft("sleep", `{"ms":10}`)
	t.publishRaw(invalid, func(m *nats.Msg) { m.Header["Fn-Protocol"] = []string{"2"} })
	r.calls["invalid"], r.times[invalid.Sequence] = invalid, 3
}

func redeliveredFull(r *redelivered) []check {
	return []check{
		full("verify/done", func(t *trial) {
			for _, name := range []string{"done", "told-park-verified"} {
				p := r.calls[name]
				t.succeeds(p, "verified")
				t.verified(p, 0)
			}
		}),
		full("verify/not-done", func(t *trial) {
			t.succeeds(r.calls["not-done"], "paid")
			t.verified(r.calls["not-done"], 1)
		}),
		full("verify/cannot-tell", func(t *trial) {
			p := r.calls["cannot-tell"]
			if o := t.kind(p, call.Uncertain); !strings.Contains(o.Reason, "no receipt") {
				t.failf("the reason is %q; want that of the verify handler", o.Reason)
			}
			t.verified(p, 0)
		}),
		full("verify/crash", func(t *trial) {
			t.kind(r.calls["verify-crashes"], call.Uncertain)
			t.verified(r.calls["verify-crashes"], 0)
		}),
		full("redelivery/park", func(t *trial) {
			t.kind(r.calls["park"], call.Uncertain)
			t.runs(r.calls["park"], 0)
		}),
		full("redelivery/crash-limit-of-others", func(t *trial) {
			t.kind(r.calls["crashing-park"], call.Uncertain)
			t.runs(r.calls["crashing-park"], 0)
			t.fails(r.calls["crashing-verify"], call.ReasonCrashed)
			if n := t.count(r.calls["crashing-verify"], "verify"); n > 0 {
				t.failf("the verify handler was asked beyond the crash limit")
			}
		}),
		full("calls/other-protocol-terminated", func(t *trial) { t.terminated(r.calls["invalid"]) }),
	}
}

// verified checks that the verify handler was asked once, and how often the call ran.
func (t *trial) verified(p *placed, runs int) {
	if n := t.count(p, "verify"); n != 1 {
		t.failf("the verify handler was asked %d times; want 1", n)
	}
	t.runs(p, runs)
	t.lookedUp(p)
}

// terminated checks the end of a message that is no call, at its fourth delivery.
func (t *trial) terminated(p *placed) {
	t.eventually(patience, func() bool { return len(t.sent(p, "+TERM")) > 0 }, "a message of protocol 2 was not terminated at its fourth delivery")
	t.eventually(patience, func() bool { return !t.queued(p) }, "a terminated message is still in the queue")
	var reason struct {
		Reason        string `json:"reason"`
		Key           string `json:"key"`
		Attempt       string `json:"attempt"`
		Nonce         string `json:"nonce"`
		ResultSubject string `json:"result_subject"`
	}
	body := strings.TrimPrefix(t.sent(p, "+TERM")[0].body, "+TERM")
	if err := json.Unmarshal([]byte(body), &reason); err != nil {
		t.failf("the reason of +TERM is %s; want JSON: %w", shorten(body), err)
	}
	if reason.Reason == "" || reason.Key != p.Key.String() || reason.Attempt != "1" || reason.Nonce != p.Nonce || reason.ResultSubject == "" {
		t.failf("the reason of +TERM is %s; want the call's headers in it", shorten(body))
	}
	t.runs(p, 0)
	if len(t.reported(p)) > 0 {
		t.failf("a message of protocol 2 was answered")
	}
}

// deliverToNobody takes each of the calls from the queue so often and gives it back.
func (t *trial) deliverToNobody(times map[uint64]int) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	consumer, err := t.conn.JetStream().Consumer(ctx, "FN_CALLS", "pool_"+pool)
	t.must(err, "look at the pool's consumer")
	var held []jetstream.Msg
	for len(held) < len(times) {
		batch, err := consumer.Fetch(len(times), jetstream.FetchMaxWait(300*time.Millisecond))
		t.must(err, "take calls from the queue")
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			t.must(err, "read a delivery")
			if int(meta.NumDelivered) < times[meta.Sequence.Stream] { //nolint:gosec // a few
				t.must(m.Nak(), "give a call back")
			} else {
				held = append(held, m)
			}
		}
		for _, m := range held {
			t.must(m.InProgress(), "keep a call")
		}
		t.must(ctx.Err(), "take calls from the queue")
	}
	for _, m := range held {
		t.must(m.Nak(), "give a call back")
	}
	t.must(t.conn.NATS().FlushTimeout(patience), "give calls back")
	pause(t.ctx, 100*time.Millisecond)
	t.mu.Lock()
	clear(t.signals) // those of the suite
	t.mu.Unlock()
}
