package conformance

import (
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// stopScene ends the executor by SIGTERM: with calls that finish in time, and with calls
// that do not.
func stopScene() scene {
	var finishing, waiting []*placed
	var cut struct{ rerun, blind, park, verify *placed }
	return scene{
		name:    "stop",
		config:  rigConfig{ackWait: shortLease, concurrency: 4, stopTimeout: 3 * time.Second},
		ordered: true,
		checks: []check{
			core("stop/finishes-what-runs", func(t *trial) {
				for range 4 {
					finishing = append(finishing, t.call("sleep", `{"ms":1500}`))
				}
				for _, p := range finishing {
					t.started(p)
				}
				for range 4 {
					waiting = append(waiting, t.call("sleep", `{"ms":10}`))
				}
				t.stop(t.latest())
				for _, p := range finishing {
					t.succeeds(p, "slept")
				}
			}),
			core("stop/gives-back-what-waits", func(t *trial) {
				if len(waiting) == 0 {
					t.failf("the executor did not come as far as this")
				}
				for _, p := range waiting {
					got := t.reported(p)
					released := len(got) == 1 && got[0].Outcome.Kind == call.Released
					ran := len(got) == 1 && got[0].Outcome.Kind == call.Success // a slot became free before the signal was seen
					if !released && !ran && !t.queued(p) {
						t.failf("a call that was waiting is neither in the queue nor was it released")
					}
					if t.count(p, "start") > 0 && !ran {
						t.failf("a call was started after SIGTERM and did not finish")
					}
				}
			}),
			full("stop/interrupts-after-the-stop-timeout", func(t *trial) {
				p := t.start()
				cut.rerun = t.call("sleep", `{"ms":60000}`, timeout(time.Minute))
				cut.blind = t.call("pay_blind", `{"ms":60000}`, timeout(time.Minute))
				cut.park = t.call("pay_park", `{"ms":60000}`, timeout(time.Minute))
				cut.verify = t.call("pay", `{"verdict":"done","ms":60000}`, timeout(time.Minute))
				for _, one := range []*placed{cut.rerun, cut.blind, cut.park, cut.verify} {
					t.started(one)
				}
				t.stop(p)
				if took := time.Since(cut.verify.published); took < 2*time.Second {
					t.failf("the executor ended %s after its calls began, without giving them the stop timeout of 3 s", took)
				}
			}),
			full("stop/releases-what-may-run-again", func(t *trial) { t.kind(t.reached(cut.rerun), call.Released) }),
			full("stop/unknown-outcome", func(t *trial) { t.fails(t.reached(cut.blind), call.ReasonUnknownOutcome) }),
			full("stop/uncertain-for-an-operator", func(t *trial) { t.kind(t.reached(cut.park), call.Uncertain) }),
			full("stop/leaves-what-can-be-verified", func(t *trial) {
				p := t.reached(cut.verify)
				if len(t.reported(p)) > 0 || !t.queued(p) {
					t.failf("a call that the next executor can verify was not left in the queue")
				}
				t.start()
				t.succeeds(p, "verified", 2*patience)
				t.runs(p, 1)
			}),
		},
	}
}

// reached gives the call that an earlier check made.
func (t *trial) reached(p *placed) *placed {
	if p == nil {
		t.failf("the executor did not come as far as this")
	}
	return p
}

// latest is the process that was started last.
func (t *trial) latest() *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.processes[len(t.processes)-1]
}
