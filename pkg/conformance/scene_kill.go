package conformance

import "github.com/callfan/callfan/pkg/call"

// killScene kills the executor in the middle of calls and starts another one.
func killScene() scene {
	var rerun, blind, pay *placed
	return scene{
		name:   "kill",
		config: rigConfig{ackWait: shortLease, concurrency: 8},
		act: func(t *trial) {
			t.serve()
			p := t.start()
			rerun = t.call("sleep", `{"ms":3000}`)
			blind = t.call("pay_blind", `{"ms":3000}`)
			running := []*placed{rerun, blind}
			if t.play.full {
				pay = t.call("pay", `{"verdict":"done","ms":3000}`)
				running = append(running, pay)
			}
			for _, one := range running {
				t.started(one)
			}
			if pay != nil { // a handler that was entered has not yet done what it does
				t.eventually(patience, func() bool { return t.count(pay, "effect") > 0 }, "the handler of %s did nothing", pay.Function)
			}
			p.kill()
			t.start()
		},
		checks: []check{
			core("killed/run-again", func(t *trial) {
				t.succeeds(rerun, "slept", 2*patience)
				t.runs(rerun, 2)
				t.lookedUp(rerun)
			}),
			core("killed/unknown-outcome", func(t *trial) {
				t.fails(blind, call.ReasonUnknownOutcome, 2*patience)
				t.runs(blind, 1)
				t.lookedUp(blind)
			}),
			full("killed/verified", func(t *trial) {
				t.succeeds(pay, "verified", 2*patience)
				t.runs(pay, 1)
				if n := t.count(pay, "effect"); n != 1 {
					t.failf("the effect took place %d times; want 1", n)
				}
				t.lookedUp(pay)
			}),
		},
	}
}

func (t *trial) lookedUp(p *placed) {
	if t.lookups(p) == 0 {
		t.failf("the executor did not ask how the call stands before it decided about a second delivery")
	}
}
