package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func testFence(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"an old owner is refused once the new one touched the turn": func(t *testing.T, s results.Store) {
			claim(t, s, 7, "call_1", "call_2")
			claim(t, s, 8, "call_1") // nothing new, but the turn has a new owner
			old := func() {
				_, err := s.Claim(deadline(t), 7, []results.Claim{seen("call_3")})
				require.ErrorIs(t, err, results.ErrFenced)
				require.ErrorIs(t, complete(t, s, 7, completion("call_1", "o1", success(`"x"`))).Err, results.ErrFenced)
				require.ErrorIs(t, move(t, s, 7, results.Move{Key: key("call_1"), To: call.Queued}).Err, results.ErrFenced)
			}
			old()
			require.Equal(t, call.Absent, get(t, s, key("call_3")).State)
			require.Equal(t, call.Seen, get(t, s, key("call_1")).State)
			save(t, s, 8, "call_1", "o1", `"x"`)
			old()
			enter(t, s, 8, "call_1", call.Settled)
			enter(t, s, 8, "call_2", call.Cancelled)
			old()
		},
		"a completion raises the fence": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			save(t, s, 2, "call_1", "o1", `"x"`)
			require.ErrorIs(t, move(t, s, 1, results.Move{Key: key("call_1"), To: call.Settled}).Err, results.ErrFenced)
		},
		"a superseded completion raises the fence": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			save(t, s, 1, "call_1", "o1", `"x"`)
			require.Equal(t, results.Superseded, complete(t, s, 2, completion("call_1", "o2", success(`"y"`))).Verdict)
			require.ErrorIs(t, move(t, s, 1, results.Move{Key: key("call_1"), To: call.Settled}).Err, results.ErrFenced)
		},
		"a move raises the fence": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			require.True(t, move(t, s, 2, results.Move{Key: key("call_1"), To: call.Queued}).Done)
			_, err := s.Claim(deadline(t), 1, []results.Claim{seen("call_2")})
			require.ErrorIs(t, err, results.ErrFenced)
		},
		"zero is lower than any": func(t *testing.T, s results.Store) {
			claim(t, s, 0, "call_1")
			claim(t, s, 0, "call_2")
			enter(t, s, 1, "call_1", call.Queued)
			require.ErrorIs(t, move(t, s, 0, results.Move{Key: key("call_2"), To: call.Queued}).Err, results.ErrFenced)
		},
		"compares as a number of 64 bits": func(t *testing.T, s results.Store) {
			claim(t, s, 9, "call_1")
			claim(t, s, 10, "call_1")
			require.ErrorIs(t, move(t, s, 9, results.Move{Key: key("call_1"), To: call.Queued}).Err, results.ErrFenced)
			claim(t, s, 1<<53, "call_1")
			claim(t, s, 1<<53+1, "call_1")
			require.ErrorIs(t, move(t, s, 1<<53, results.Move{Key: key("call_1"), To: call.Queued}).Err, results.ErrFenced)
			claim(t, s, 1<<64-1, "call_1")
			require.ErrorIs(t, move(t, s, 1<<64-2, results.Move{Key: key("call_1"), To: call.Queued}).Err, results.ErrFenced)
			enter(t, s, 1<<64-1, "call_1", call.Queued)
		},
		"belongs to the turn": func(t *testing.T, s results.Store) {
			claim(t, s, 5, "call_1")
			other := results.Claim{Key: call.Key{Session: session, Turn: "turn_2", Call: "call_1"}, Function: "f", State: call.Seen}
			_, err := s.Claim(deadline(t), 4, []results.Claim{other})
			require.NoError(t, err)
		},
		"refuses elements, not batches": func(t *testing.T, s results.Store) {
			mine := completion("call_1", "o1", success(`"x"`))
			lost := mine
			lost.Key.Session = "sess_2"
			mine.Adopt, lost.Adopt = true, true
			_, err := s.Claim(deadline(t), 9, []results.Claim{{Key: lost.Key, Function: "f", State: call.Seen}})
			require.NoError(t, err)
			answers, err := s.Complete(deadline(t), []uint64{3, 5}, []results.Completion{lost, mine})
			require.NoError(t, err)
			require.ErrorIs(t, answers[0].Err, results.ErrFenced)
			require.Zero(t, answers[0].Verdict)
			require.NoError(t, answers[1].Err)
			require.Equal(t, results.Saved, answers[1].Verdict)
			moved, err := s.Move(deadline(t), 5, []results.Move{{Key: lost.Key, To: call.Queued}, {Key: mine.Key, To: call.Submitted}})
			require.NoError(t, err)
			require.ErrorIs(t, moved[0].Err, results.ErrFenced)
			require.Equal(t, results.Moved{Done: true, State: call.Submitted}, moved[1])
		},
		"what writes nothing leaves no fence behind": func(t *testing.T, s results.Store) {
			require.Equal(t, results.Unknown, complete(t, s, 9, completion("call_1", "o1", success(`"x"`))).Verdict)
			require.Equal(t, results.Moved{}, move(t, s, 9, results.Move{Key: key("call_1"), To: call.Queued}))
			claim(t, s, 1, "call_1")
		},
	})
	t.Run("holds between stores", func(t *testing.T) {
		t.Parallel()
		one, two := b.pair(t)
		claim(t, one, 1, "call_1")
		claim(t, two, 2, "call_1")
		require.ErrorIs(t, complete(t, one, 1, completion("call_1", "o1", success(`"x"`))).Err, results.ErrFenced)
	})
}
