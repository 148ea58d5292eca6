package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func testClaim(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"records absent calls in order": func(t *testing.T, s results.Store) {
			records, err := s.Claim(deadline(t), 1, []results.Claim{
				{Key: key("call_b"), Function: "f", State: call.Seen},
				{Key: key("call_a"), Function: "g", State: call.Held},
			})
			require.NoError(t, err)
			require.Len(t, records, 2)
			require.Equal(t, key("call_b"), records[0].Key)
			require.Equal(t, "f", records[0].Function)
			require.Equal(t, call.Seen, records[0].State)
			require.Equal(t, key("call_a"), records[1].Key)
			require.Equal(t, "g", records[1].Function)
			require.Equal(t, call.Held, records[1].State)
			for _, r := range records {
				require.WithinDuration(t, time.Now(), r.ClaimedAt, 10*time.Second)
				require.Zero(t, r.Attempt)
				require.Zero(t, r.Handover)
				require.Empty(t, r.OutcomeID)
				require.Nil(t, r.Result)
			}
		},
		"again changes nothing": func(t *testing.T, s results.Store) {
			first := claim(t, s, 1, "call_1")
			again, err := s.Claim(deadline(t), 1, []results.Claim{
				{Key: key("call_1"), Function: "other", State: call.Held},
				seen("call_2"),
			})
			require.NoError(t, err)
			require.Equal(t, still(first[0]), still(again[0]))
			require.Equal(t, call.Seen, again[1].State)
		},
		"the same call twice in one request is one record": func(t *testing.T, s results.Store) {
			records := claim(t, s, 1, "call_1", "call_2", "call_1")
			require.Equal(t, still(records[0]), still(records[2]))
			all, err := s.Session(deadline(t), session)
			require.NoError(t, err)
			require.Len(t, all, 2)
		},
		"includes results of saved calls": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1", "call_2")
			save(t, s, 1, "call_1", "o1", `"sunny"`)
			records := claim(t, s, 1, "call_1", "call_2")
			require.Equal(t, call.Succeeded, records[0].State)
			require.Equal(t, success(`"sunny"`), *records[0].Result)
			require.Equal(t, "o1", records[0].OutcomeID)
			require.Nil(t, records[1].Result)
		},
		"knows attempt and hand-over": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			move(t, s, 1, results.Move{Key: key("call_1"), To: call.Queued, Attempt: 2, Handover: 3})
			r := claim(t, s, 1, "call_1")[0]
			require.Equal(t, 2, r.Attempt)
			require.Equal(t, 3, r.Handover)
		},
		"age grows by the store's clock": func(t *testing.T, s results.Store) {
			first := claim(t, s, 1, "call_1")[0]
			require.Eventually(t, func() bool {
				return claim(t, s, 1, "call_1")[0].Age >= first.Age+50*time.Millisecond
			}, patience, 20*time.Millisecond)
		},
		"since grows from the last change on": sinceLastChange,
		"one session with several turns": func(t *testing.T, s results.Store) {
			var claims []results.Claim
			for i := range 30 {
				claims = append(claims, results.Claim{
					Key:      call.Key{Session: session, Turn: fmt.Sprintf("turn_%d", i%3), Call: fmt.Sprintf("call_%d", i)},
					Function: fmt.Sprintf("f%d", i), State: call.Seen,
				})
			}
			records, err := s.Claim(deadline(t), 1, claims)
			require.NoError(t, err)
			for i, r := range records {
				require.Equal(t, claims[i].Key, r.Key)
				require.Equal(t, claims[i].Function, r.Function)
			}
		},
		"1,000 calls in one request": func(t *testing.T, s results.Store) {
			ids := make([]string, 1000)
			for i := range ids {
				ids[i] = fmt.Sprintf("call_%d", i)
			}
			for i, r := range claim(t, s, 1, ids...) {
				require.Equal(t, ids[i], r.Key.Call)
				require.Equal(t, call.Seen, r.State)
			}
		},
		"16 claimants see one claim": func(t *testing.T, s results.Store) {
			answers := make([]results.Record, 16)
			var wg sync.WaitGroup
			for i := range answers {
				wg.Go(func() {
					records, err := s.Claim(deadline(t), 1, []results.Claim{
						{Key: key("call_1"), Function: fmt.Sprintf("f%d", i), State: call.Seen},
					})
					if err == nil {
						answers[i] = records[0]
					}
				})
			}
			wg.Wait()
			require.NotEmpty(t, answers[0].Function)
			for _, r := range answers {
				require.Equal(t, still(answers[0]), still(r))
			}
		},
		"only as seen or held": func(t *testing.T, s results.Store) {
			_, err := s.Claim(deadline(t), 1, []results.Claim{{Key: key("call_1"), Function: "f", State: call.Queued}})
			require.Error(t, err)
			require.Equal(t, call.Absent, get(t, s, key("call_1")).State)
		},
	})
}

// sinceLastChange holds that what changes a call restarts Record.Since, and that
// what changes nothing does not.
func sinceLastChange(t *testing.T, s results.Store) {
	grows := func() {
		t.Helper()
		require.Eventually(t, func() bool {
			return get(t, s, key("call_1")).Since >= 400*time.Millisecond
		}, patience, 20*time.Millisecond)
	}
	restarts := func(change func()) {
		t.Helper()
		grows()
		change()
		r := get(t, s, key("call_1"))
		require.Less(t, r.Since, 400*time.Millisecond)
		require.GreaterOrEqual(t, r.Age, r.Since+400*time.Millisecond)
	}
	queued := results.Move{Key: key("call_1"), To: call.Queued, Attempt: 1, Handover: 1}
	first := claim(t, s, 1, "call_1")[0]
	require.Less(t, first.Since, 10*time.Second)
	restarts(func() { require.True(t, move(t, s, 1, queued).Done) })
	grows()
	claim(t, s, 1, "call_1")
	require.True(t, move(t, s, 1, queued).Done, "a replay")
	require.False(t, move(t, s, 1, results.Move{Key: key("call_1"), To: call.Settled}).Done)
	require.GreaterOrEqual(t, claim(t, s, 1, "call_1")[0].Since, 400*time.Millisecond)
	restarts(func() { save(t, s, 1, "call_1", "o1", `"sunny"`) })
	grows()
	save(t, s, 1, "call_1", "o1", `"sunny"`)
	require.GreaterOrEqual(t, get(t, s, key("call_1")).Since, 400*time.Millisecond)
	restarts(func() { enter(t, s, 1, "call_1", call.Submitted) })
}
