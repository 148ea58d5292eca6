package history

import "github.com/callfan/callfan/pkg/call"

// Letters are the one-letter names under which stores keep states. s, h, q, r and
// p are the open ones, S, F and U the saved ones, e, c and o the final ones.
var Letters = map[call.State]string{
	call.Seen: "s", call.Held: "h", call.Queued: "q", call.Retrying: "r", call.Parked: "p",
	call.Succeeded: "S", call.Failed: "F", call.Submitted: "U",
	call.Settled: "e", call.Cancelled: "c", call.Obsolete: "o",
}

// States are the states of the letters.
var States = func() map[string]call.State {
	m := make(map[string]call.State, len(Letters))
	for state, letter := range Letters {
		m[letter] = state
	}
	return m
}()
