//go:build unix

package chaos

import "time"

// Bug is a fault that can be planted.
type Bug struct {
	// Tag is the build tag that plants it. A normal build contains none.
	Tag string
	// faults and gap make what it does show soon, unless the run says otherwise.
	faults []string
	gap    time.Duration
	// caught says whether a report shows what the fault does. Calls that were only too slow for a short run do not count.
	caught func(*Report) bool
}

// Bugs are the planted faults by name.
var Bugs = map[string]Bug{
	// Outcomes that a dispatcher takes along when it dies are gone.
	"ack-before-save": {"chaosbug_ackbeforesave", []string{"dispatcher", "redis"}, 3 * time.Second, func(r *Report) bool {
		return r.Forgotten > 0 || r.LostResults > 0 || r.Doubled > 0 || r.EffectsDoubled > 0 || float64(r.RunAgain) > mostRunAgain*float64(r.Calls)
	}},
	// All replicas serve all sessions.
	"no-fence": {"chaosbug_nofence", nil, 8 * time.Second, func(r *Report) bool {
		return r.Shared > mostShared || r.Doubled > 0 || r.EffectsDoubled > 0
	}},
	// Every replica and every owner publishes a call once more.
	"no-claim": {"chaosbug_noclaim", nil, 8 * time.Second, func(r *Report) bool { return r.EffectsDoubled > 0 }},
}
