package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// A call's entry in its turn's hash is one compact text:
//
//	STATE ATTEMPT "." HANDOVER "." CLAIMED "." CHANGED "." LENGTH "." FUNCTION OUTCOME
//
// STATE is one letter, CLAIMED the milliseconds of the claim by the server's
// clock, CHANGED the milliseconds from there to the last change, LENGTH the
// length of FUNCTION, OUTCOME the id of the saved outcome.
// The scripts read it with the same grammar; see luaMeta.

// letters are the one-letter names of the states. s, h, q, r and p are the open
// ones, S, F and U the saved ones, e, c and o the final ones.
var letters = map[call.State]string{
	call.Seen: "s", call.Held: "h", call.Queued: "q", call.Retrying: "r", call.Parked: "p",
	call.Succeeded: "S", call.Failed: "F", call.Submitted: "U",
	call.Settled: "e", call.Cancelled: "c", call.Obsolete: "o",
}

var states = func() map[string]call.State {
	m := map[string]call.State{"": call.Absent}
	for state, letter := range letters {
		m[letter] = state
	}
	return m
}()

var errMalformed = errors.New("a call's entry in Redis is malformed")

// parseMeta reads an entry; now is the server's clock in milliseconds.
func parseMeta(key call.Key, meta string, now int64) (results.Record, error) {
	bad := func() (results.Record, error) { return results.Record{}, fmt.Errorf("%w: %s", errMalformed, key) }
	if meta == "" {
		return bad()
	}
	state, ok := states[meta[:1]]
	parts := strings.SplitN(meta[1:], ".", 6)
	if !ok || len(parts) != 6 {
		return bad()
	}
	var numbers [5]int64
	for i := range numbers {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil {
			return bad()
		}
		numbers[i] = n
	}
	claimed, changed, length, rest := numbers[2], numbers[3], numbers[4], parts[5]
	if length < 0 || length > int64(len(rest)) {
		return bad()
	}
	return results.Record{
		Key:       key,
		Function:  rest[:length],
		State:     state,
		Attempt:   int(numbers[0]),
		Handover:  int(numbers[1]),
		ClaimedAt: time.UnixMilli(claimed),
		OutcomeID: rest[length:],
		Age:       max(0, time.Duration(now-claimed)*time.Millisecond),
		Since:     max(0, time.Duration(now-claimed-changed)*time.Millisecond),
	}, nil
}
