package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func testMove(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"takes exactly the allowed transitions": allTransitions,
		"sets attempt and hand-over": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			m := results.Move{Key: key("call_1"), To: call.Queued, Attempt: 1, Handover: 1}
			require.Equal(t, results.Moved{Done: true, State: call.Queued}, move(t, s, 1, m))
			require.Equal(t, results.Moved{Done: true, State: call.Queued}, move(t, s, 1, m), "a replay")
			back := results.Move{Key: key("call_1"), To: call.Seen, Attempt: 2}
			require.True(t, move(t, s, 1, back).Done)
			r := get(t, s, key("call_1"))
			require.Equal(t, call.Seen, r.State)
			require.Equal(t, 2, r.Attempt)
			require.Equal(t, 1, r.Handover, "zero keeps the record's")
		},
		"a seen call is handed over once more": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			for handover := 1; handover <= 3; handover++ {
				m := results.Move{Key: key("call_1"), To: call.Seen, Attempt: 1, Handover: handover}
				for range 2 { // and a replay
					require.Equal(t, results.Moved{Done: true, State: call.Seen}, move(t, s, 1, m))
					require.Equal(t, handover, get(t, s, key("call_1")).Handover)
				}
			}
		},
		"is not done when attempt or hand-over differ": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			move(t, s, 1, results.Move{Key: key("call_1"), To: call.Queued, Attempt: 1, Handover: 1})
			for _, m := range []results.Move{
				{Key: key("call_1"), To: call.Queued, Attempt: 2},
				{Key: key("call_1"), To: call.Queued, Attempt: 1, Handover: 2},
			} {
				require.Equal(t, results.Moved{State: call.Queued}, move(t, s, 1, m))
			}
			r := get(t, s, key("call_1"))
			require.Equal(t, 1, r.Attempt)
			require.Equal(t, 1, r.Handover)
		},
		"drops the body at each final state": func(t *testing.T, s results.Store) {
			for _, to := range []call.State{call.Settled, call.Cancelled, call.Obsolete} {
				id := string(to)
				claim(t, s, 1, id)
				save(t, s, 1, id, "o1", `"sunny"`)
				require.NotNil(t, get(t, s, key(id)).Result)
				enter(t, s, 1, id, to)
				r := get(t, s, key(id))
				require.Nil(t, r.Result)
				require.Equal(t, "o1", r.OutcomeID)
				require.Equal(t, to, r.State)
				require.Nil(t, claim(t, s, 1, id)[0].Result)
			}
		},
		"keeps the body while submitted": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			save(t, s, 1, "call_1", "o1", `"sunny"`)
			enter(t, s, 1, "call_1", call.Submitted)
			require.Equal(t, success(`"sunny"`), *get(t, s, key("call_1")).Result)
			require.Equal(t, success(`"sunny"`), *claim(t, s, 1, "call_1")[0].Result)
		},
		"a batch answers in order": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1", "call_2")
			other := call.Key{Session: session, Turn: "turn_2", Call: "call_1"}
			_, err := s.Claim(deadline(t), 1, []results.Claim{{Key: other, Function: "f", State: call.Held}})
			require.NoError(t, err)
			answers, err := s.Move(deadline(t), 1, []results.Move{
				{Key: key("call_2"), To: call.Submitted},
				{Key: other, To: call.Cancelled},
				{Key: key("call_1"), To: call.Queued},
				{Key: key("call_9"), To: call.Queued},
				{Key: key("call_1"), To: call.Seen},
			})
			require.NoError(t, err)
			require.Equal(t, []results.Moved{
				{State: call.Seen},
				{Done: true, State: call.Cancelled},
				{Done: true, State: call.Queued},
				{State: call.Absent},
				{Done: true, State: call.Seen},
			}, answers)
		},
		"to no state is refused": func(t *testing.T, s results.Store) {
			for _, to := range []call.State{call.Absent, "dreaming"} {
				_, err := s.Move(deadline(t), 1, []results.Move{{Key: key("call_1"), To: to}})
				require.Error(t, err)
			}
		},
	})
}

// allTransitions brings a call into each state and asks for each other one.
func allTransitions(t *testing.T, s results.Store) {
	allowed := call.Transitions()
	for _, from := range call.States() {
		for _, to := range call.States() {
			if to == call.Absent {
				continue
			}
			id := fmt.Sprintf("from %s to %s", from, to)
			bring(t, s, id, from)
			before := get(t, s, key(id))
			answer := move(t, s, 1, results.Move{Key: key(id), To: to})
			require.NoError(t, answer.Err)

			want := results.Moved{State: from}
			byMove := from != call.Absent && to != call.Succeeded && to != call.Failed
			if from == to || (byMove && slices.Contains(allowed[from], to)) {
				want = results.Moved{Done: true, State: to}
			}
			require.Equal(t, want, answer, id)
			after := get(t, s, key(id))
			require.Equal(t, want.State, after.State, id)
			if from == want.State {
				require.Equal(t, still(before), still(after), "%s: a refused move changes nothing", id)
			}
			again := move(t, s, 1, results.Move{Key: key(id), To: to})
			require.Equal(t, want, again, "%s: again", id)
		}
	}
}

// bring makes a call that is in the state.
func bring(t *testing.T, s results.Store, id string, state call.State) {
	t.Helper()
	bringKey(t, s, key(id), state)
}

func bringKey(t *testing.T, s results.Store, k call.Key, state call.State) {
	t.Helper()
	if state == call.Absent {
		return
	}
	c := results.Claim{Key: k, Function: "get_weather", State: call.Seen}
	if state == call.Held {
		c.State = call.Held
	}
	_, err := s.Claim(deadline(t), 1, []results.Claim{c})
	require.NoError(t, err)
	saved := results.Completion{Key: k, Function: "get_weather", OutcomeID: "o", Attempt: 1, Result: success(`"yes"`)}
	switch state {
	case call.Seen, call.Held:
	case call.Queued, call.Retrying, call.Parked, call.Cancelled:
		require.True(t, move(t, s, 1, results.Move{Key: k, To: state}).Done)
	case call.Failed:
		saved.Result = failure("no")
		complete(t, s, 1, saved)
	default:
		complete(t, s, 1, saved)
		if state != call.Succeeded {
			require.True(t, move(t, s, 1, results.Move{Key: k, To: state}).Done)
		}
	}
	require.Equal(t, state, get(t, s, k).State)
}
