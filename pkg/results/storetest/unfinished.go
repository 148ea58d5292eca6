package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func testUnfinished(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"an empty store has none": func(t *testing.T, s results.Store) {
			require.Empty(t, unfinished(t, s))
		},
		"sessions with open and saved calls, not those that ended": func(t *testing.T, s results.Store) {
			var want []string
			for _, state := range call.States()[1:] {
				k := call.Key{Session: "sess_" + string(state), Turn: turn, Call: "call_1"}
				bringKey(t, s, k, state)
				if !state.Final() {
					want = append(want, k.Session)
				}
			}
			require.ElementsMatch(t, want, unfinished(t, s))
		},
		"a session of many turns is visited once, until its last call ends": func(t *testing.T, s results.Store) {
			var keys []call.Key
			for i := range 60 {
				k := call.Key{Session: session, Turn: fmt.Sprintf("turn_%d", i%20), Call: fmt.Sprintf("call_%d", i)}
				bringKey(t, s, k, call.Seen)
				keys = append(keys, k)
			}
			for _, k := range keys {
				require.Equal(t, []string{session}, unfinished(t, s))
				require.True(t, move(t, s, 1, results.Move{Key: k, To: call.Cancelled}).Done)
			}
			require.Empty(t, unfinished(t, s))
		},
		"sessions of any bytes": func(t *testing.T, s results.Store) {
			for _, id := range append(oddIDs, "") {
				bringKey(t, s, call.Key{Session: id, Turn: id, Call: id}, call.Seen)
			}
			require.ElementsMatch(t, append(oddIDs, ""), unfinished(t, s))
		},
		"thousands of sessions": func(t *testing.T, s results.Store) {
			var want []string
			var fences []uint64
			var completions []results.Completion
			for i := range 3000 {
				c := completion("call_1", "o", success("1"))
				c.Key.Session, c.Adopt = fmt.Sprintf("sess_%d", i), true
				want, fences, completions = append(want, c.Key.Session), append(fences, 1), append(completions, c)
			}
			_, err := s.Complete(deadline(t), fences, completions)
			require.NoError(t, err)
			require.ElementsMatch(t, want, unfinished(t, s))
		},
		"an error of the visit ends it": func(t *testing.T, s results.Store) {
			for i := range 5 {
				bringKey(t, s, call.Key{Session: fmt.Sprintf("sess_%d", i), Turn: turn, Call: "c"}, call.Seen)
			}
			enough, visits := errors.New("enough"), 0
			err := s.Unfinished(deadline(t), func(string) error {
				if visits++; visits == 2 {
					return enough
				}
				return nil
			})
			require.ErrorIs(t, err, enough)
			require.Equal(t, 2, visits)
		},
		"the visit may use the store": func(t *testing.T, s results.Store) {
			for i := range 5 {
				bringKey(t, s, call.Key{Session: fmt.Sprintf("sess_%d", i), Turn: turn, Call: "c"}, call.Seen)
			}
			require.NoError(t, s.Unfinished(deadline(t), func(session string) error {
				records, err := s.Session(deadline(t), session)
				require.Len(t, records, 1)
				return err
			}))
		},
	})
	t.Run("other installations are not visited", func(t *testing.T) {
		t.Parallel()
		one, two := b.store(t), b.store(t)
		claim(t, one, 1, "call_1")
		require.Equal(t, []string{session}, unfinished(t, one))
		require.Empty(t, unfinished(t, two))
	})
}

// unfinished collects the sessions that are visited.
func unfinished(t *testing.T, s results.Store) []string {
	t.Helper()
	var sessions []string
	require.NoError(t, s.Unfinished(deadline(t), func(session string) error {
		sessions = append(sessions, session)
		return nil
	}))
	return sessions
}
