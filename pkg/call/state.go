package call

// State is where a call is in its life.
type State string

// The states of a call. Absent is the state of a call that was never seen.
const (
	Absent State = ""
	// Seen: claimed; its publication may or may not have happened.
	Seen State = "seen"
	// Held: claimed, waiting for an executor to register the function.
	Held State = "held"
	// Queued: known to be in the stream, or running.
	Queued State = "queued"
	// Retrying: an attempt failed for a technical reason; the next one waits for its time.
	Retrying State = "retrying"
	// Parked: it may have taken effect and nobody can tell; an operator decides.
	Parked State = "parked"
	// Succeeded: a result is saved, to be submitted.
	Succeeded State = "succeeded"
	// Failed: an error for the model is saved, to be submitted.
	Failed State = "failed"
	// Submitted: the API accepted the result; not yet seen to be applied.
	Submitted State = "submitted"
	// Settled: the session no longer lists the call. Final.
	Settled State = "settled"
	// Cancelled: the session stopped listing the call before a result was
	// accepted: its turn or session ended. Final.
	Cancelled State = "cancelled"
	// Obsolete: the API has a different result or refuses this one for good. Final.
	Obsolete State = "obsolete"
)

// transitions is the state machine: for each state, the states that may follow.
// Seen follows itself when a hand-over of unknown fate is published once more.
var transitions = map[State][]State{
	Absent:    {Seen, Held, Succeeded, Failed},
	Seen:      {Seen, Queued, Held, Retrying, Parked, Succeeded, Failed, Cancelled},
	Held:      {Seen, Queued, Succeeded, Failed, Cancelled},
	Queued:    {Seen, Retrying, Parked, Succeeded, Failed, Cancelled},
	Retrying:  {Seen, Succeeded, Failed, Cancelled},
	Parked:    {Seen, Succeeded, Failed, Cancelled},
	Succeeded: {Submitted, Settled, Cancelled, Obsolete},
	Failed:    {Submitted, Settled, Cancelled, Obsolete},
	Submitted: {Settled, Obsolete},
}

// Transitions are the allowed transitions: for each state the states that may
// follow it. Final states have none. The map is a copy.
func Transitions() map[State][]State {
	out := make(map[State][]State, len(transitions))
	for from, tos := range transitions {
		out[from] = append([]State(nil), tos...)
	}
	return out
}

// From lists the states from which s may be entered.
func (s State) From() []State {
	var from []State
	for _, f := range States() {
		for _, to := range transitions[f] {
			if to == s {
				from = append(from, f)
			}
		}
	}
	return from
}

// States lists every state, Absent first, in the order of a call's life.
func States() []State {
	return []State{Absent, Seen, Held, Queued, Retrying, Parked, Succeeded, Failed, Submitted, Settled, Cancelled, Obsolete}
}

// Final says that nothing more will happen to the call.
func (s State) Final() bool { return s == Settled || s == Cancelled || s == Obsolete }

// Saved says that a result is stored and not yet known to be applied.
func (s State) Saved() bool { return s == Succeeded || s == Failed || s == Submitted }

// Open says that the call still waits for a result.
func (s State) Open() bool {
	return s == Seen || s == Held || s == Queued || s == Retrying || s == Parked
}
