package conformance

import (
	"context"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// frozenScene stops the executor's clock for longer than a lease, with calls on their way
// to it, which may be with somebody else when it reads them.
func frozenScene() scene {
	var blind, pay *placed
	return scene{
		name:   "frozen",
		config: rigConfig{ackWait: shortLease, concurrency: 8},
		act: func(t *trial) {
			t.serve()
			p := t.start()
			for range 5 {
				p.freeze()
				pause(t.ctx, 100*time.Millisecond) // until what it started has heard
				blind = t.call("pay_blind", `{}`)
				pay = t.call("pay", `{"verdict":"done"}`)
				if t.until(settleTime, t.allDelivered) {
					pause(t.ctx, shortLease+settleTime)
					p.thaw()
					return
				}
				p.thaw() // no pull was open at that moment, so the calls are not stale
				t.only(blind)
				t.only(pay)
			}
			t.failf("the executor has no pull open although it has nothing to do")
		},
		checks: []check{
			full("stood-still/unknown-outcome", func(t *trial) {
				t.eventually(patience, func() bool { return len(t.reported(blind)) > 0 }, "no outcome of a call that was read after its lease ran out")
				if o := t.outcome(blind); o.Kind != call.Failure || o.Cause != call.ReasonUnknownOutcome {
					t.failf("the outcome is %s; want a failure with the cause %s: another executor may have had the call", describe(o), call.ReasonUnknownOutcome)
				}
				t.runs(blind, 0)
			}),
			full("stood-still/verified-by-the-next", func(t *trial) {
				t.eventually(patience, func() bool { return len(t.reported(pay)) > 0 }, "no outcome of a call that was left to its lease")
				t.is(t.outcome(pay), "verified")
				t.runs(pay, 0)
			}),
		},
	}
}

// allDelivered says whether the server has sent out all calls that are in the queue.
func (t *trial) allDelivered() bool {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	consumer, err := t.conn.JetStream().Consumer(ctx, "FN_CALLS", "pool_"+pool)
	t.must(err, "look at the pool's consumer")
	return consumer.CachedInfo().NumPending == 0
}
