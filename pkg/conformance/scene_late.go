package conformance

import (
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// lateScene has calls lie in the network for longer than a lease while the executor is well,
// so that they may be with somebody else when it reads them. Their delivery count says 1.
func lateScene() scene {
	var blind, pay *placed
	return scene{
		name:   "late",
		config: rigConfig{ackWait: shortLease, concurrency: 8, tapped: true},
		act: func(t *trial) {
			t.serve()
			t.start()
			for range 5 {
				t.tap.shut(true)
				blind = t.call("pay_blind", `{}`)
				pay = t.call("pay", `{"verdict":"done"}`)
				if t.until(settleTime, t.allDelivered) {
					pause(t.ctx, shortLease+settleTime)
					t.tap.shut(false)
					return
				}
				t.tap.shut(false) // no pull was open at that moment, so the calls are not late
				t.only(blind)
				t.only(pay)
			}
			t.failf("the executor has no pull open although it has nothing to do")
		},
		checks: []check{
			full("late/unknown-outcome", func(t *trial) {
				t.eventually(patience, func() bool { return len(t.reported(blind)) > 0 }, "no outcome of a call that lay in the network until its lease ran out")
				if o := t.outcome(blind); o.Kind != call.Failure || o.Cause != call.ReasonUnknownOutcome {
					t.failf("the outcome is %s; want a failure with the cause %s: another executor may have had the call", describe(o), call.ReasonUnknownOutcome)
				}
				t.runs(blind, 0)
			}),
			full("late/verified-by-the-next", func(t *trial) {
				t.eventually(patience, func() bool { return len(t.reported(pay)) > 0 }, "no outcome of a call that was left to its lease")
				t.is(t.outcome(pay), "verified")
				t.runs(pay, 0)
			}),
			full("late/in-time-again", func(t *trial) {
				deadline := time.Now().Add(patience)
				for p := t.call("pay_blind", `{}`); t.only(p).Kind != call.Success; p = t.call("pay_blind", `{}`) {
					if time.Now().After(deadline) {
						t.failf("calls that were in time are still taken for late, %s after the network came back", patience)
					}
				}
			}),
		},
	}
}
