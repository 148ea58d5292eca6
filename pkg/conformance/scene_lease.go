package conformance

import (
	"fmt"
	"time"
)

// shortLease is the lease where it matters.
const shortLease = 2 * time.Second

// leaseScene has handlers that run for several leases.
func leaseScene() scene {
	const run = 7 * time.Second
	long := func(function, text string) func(*trial) {
		return func(t *trial) {
			p := t.call(function, fmt.Sprintf(`{"ms":%d}`, run.Milliseconds()))
			t.succeeds(p, text, run+patience)
			t.runs(p, 1)
			if n := t.lookups(p); n > 0 {
				t.failf("the lease ran out: the call was delivered again and looked up %d times", n)
			}
			least := int(run/shortLease) * 2
			if n := len(t.sent(p, "+WPI")); n < least {
				t.failf("the lease was extended %d times in %s; want a third of the lease, %s, between two", n, run, shortLease/3)
			}
		}
	}
	return scene{
		name:   "lease",
		config: rigConfig{ackWait: shortLease, refresh: 2 * time.Second, concurrency: 8},
		checks: []check{
			core("leases/waiting-handler", long("sleep", "slept")),
			core("leases/blocking-handler", long("block", "blocked")),
			core("registration/repeated", registrationRepeated),
			full("leases/heartbeats", leaseHeartbeats),
		},
	}
}

func registrationRepeated(t *trial) {
	before := len(t.registeredAs("echo"))
	t.eventually(patience, func() bool { return len(t.registeredAs("echo")) >= before+2 },
		"the functions were not registered again, although the binding asks for it every 2 s")
}

func leaseHeartbeats(t *trial) {
	if rarest, most := t.rarestHeartbeat(), shortLease/6; rarest <= 0 || rarest > most {
		t.failf("a pull asked for a heartbeat every %s (0s: for none); want one in a sixth of the lease, %s, at least: "+
			"a call that comes to an idle pull may have been on its way since the last", rarest, most)
	}
}
