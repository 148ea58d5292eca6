//go:build unix

package chaos

// Bug is a fault that can be planted.
type Bug struct {
	// Tag is the build tag that plants it. A normal build contains none.
	Tag string
	// caught says whether a report shows what the fault does. Calls that were only too slow for a short run do not count.
	caught func(*Report) bool
}

// Bugs are the planted faults by name.
var Bugs = map[string]Bug{
	// Outcomes that a dispatcher takes along when it dies are gone.
	"ack-before-save": {"chaosbug_ackbeforesave", func(r *Report) bool {
		return r.LostResults > 0 || r.Doubled > 0 || r.EffectsDoubled > 0
	}},
	// All replicas serve all sessions.
	"no-fence": {"chaosbug_nofence", func(r *Report) bool { return r.Shared > mostShared || r.Doubled > 0 || r.EffectsDoubled > 0 }},
	// Every replica and every owner publishes a call once more.
	"no-claim": {"chaosbug_noclaim", func(r *Report) bool { return r.EffectsDoubled > 0 }},
}
