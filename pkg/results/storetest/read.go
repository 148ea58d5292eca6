package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func testRead(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"Get answers in order, absent calls too": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1", "call_2")
			save(t, s, 1, "call_2", "o2", `"sunny"`)
			other := call.Key{Session: "sess_2", Turn: turn, Call: "call_1"}
			records, err := s.Get(deadline(t), []call.Key{key("call_2"), other, key("call_1"), key("call_3"), key("call_2")})
			require.NoError(t, err)
			require.Len(t, records, 5)
			require.Equal(t, success(`"sunny"`), *records[0].Result)
			require.Equal(t, results.Record{Key: other}, records[1])
			require.Equal(t, call.Seen, records[2].State)
			require.Equal(t, results.Record{Key: key("call_3")}, records[3])
			require.Equal(t, still(records[0]), still(records[4]))
		},
		"Session reads every turn of one session": func(t *testing.T, s results.Store) {
			want := map[call.Key]call.State{}
			for i := range 12 {
				k := call.Key{Session: session, Turn: fmt.Sprintf("turn_%d", i%4), Call: fmt.Sprintf("call_%d", i)}
				stranger := k
				stranger.Session = "sess_2"
				for _, k := range []call.Key{k, stranger} {
					_, err := s.Claim(deadline(t), 1, []results.Claim{{Key: k, Function: "f", State: call.Seen}})
					require.NoError(t, err)
				}
				want[k] = call.Seen
				if i%3 == 0 {
					c := results.Completion{Key: k, Result: success(`"x"`), OutcomeID: "o"}
					require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict)
					want[k] = call.Succeeded
				}
				if i%6 == 0 {
					require.True(t, move(t, s, 1, results.Move{Key: k, To: call.Settled}).Done)
					want[k] = call.Settled
				}
			}
			records, err := s.Session(deadline(t), session)
			require.NoError(t, err)
			got := map[call.Key]call.State{}
			for _, r := range records {
				got[r.Key] = r.State
				require.Equal(t, r.State == call.Succeeded, r.Result != nil)
				require.Equal(t, still(get(t, s, r.Key)), still(r))
			}
			require.Equal(t, want, got)
			require.Len(t, records, len(want))
		},
		"an unknown session is empty": func(t *testing.T, s results.Store) {
			records, err := s.Session(deadline(t), "sess_9")
			require.NoError(t, err)
			require.Empty(t, records)
		},
	})
	t.Run("what one store wrote, another reads", func(t *testing.T) {
		t.Parallel()
		one, two := b.pair(t)
		claim(t, one, 1, "call_1")
		save(t, two, 1, "call_1", "o1", `"sunny"`)
		require.Equal(t, success(`"sunny"`), *get(t, one, key("call_1")).Result)
		enter(t, one, 1, "call_1", call.Submitted)
		require.Equal(t, call.Submitted, get(t, two, key("call_1")).State)
	})
}
