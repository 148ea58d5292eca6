package queue

// The kinds of repairs that the registry's periodic check makes.
const (
	// RepairStuckCall: a call that no consumer would have handed out again was answered
	// as given up, or removed because it had been answered.
	RepairStuckCall = "stuck_call"
	// RepairMovedCall: a call that waited where its consumer had passed was published
	// once more.
	RepairMovedCall = "moved_call"
	// RepairOrphanOutcome: a message that no partition takes was removed from the results
	// stream.
	RepairOrphanOutcome = "orphan_outcome"
)

// WithRepairs has told be told what the registry's periodic check repaired: one of the
// kinds above, and how many. Several dispatchers that find the same thing may each tell
// of it. told must not block.
func WithRepairs(told func(kind string, n int)) RegistryOption {
	return func(r *Registry) { r.told = told }
}

func (r *Registry) repaired(kind string, n int) {
	if r.told != nil && n > 0 {
		r.told(kind, n)
	}
}
