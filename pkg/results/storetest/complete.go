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

func testComplete(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"saves a success": func(t *testing.T, s results.Store) {
			claimed := claim(t, s, 1, "call_1")[0]
			answer := complete(t, s, 1, completion("call_1", "o1", success(`"sunny"`)))
			require.Equal(t, results.Saved, answer.Verdict)
			require.Equal(t, call.Succeeded, answer.Record.State)
			require.Equal(t, "o1", answer.Record.OutcomeID)
			require.Equal(t, claimed.ClaimedAt, answer.Record.ClaimedAt)
			require.Equal(t, "get_weather", answer.Record.Function)
			require.Nil(t, answer.Record.Result, "a saved result is not sent back")
			require.Equal(t, success(`"sunny"`), *get(t, s, key("call_1")).Result)
		},
		"saves a failure": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			answer := complete(t, s, 1, completion("call_1", "o1", failure("no such city")))
			require.Equal(t, results.Saved, answer.Verdict)
			require.Equal(t, call.Failed, answer.Record.State)
			require.Equal(t, failure("no such city"), *get(t, s, key("call_1")).Result)
		},
		"from each open state": func(t *testing.T, s results.Store) {
			_, err := s.Claim(deadline(t), 1, []results.Claim{
				seen("seen"),
				{Key: key("held"), Function: "f", State: call.Held},
				seen("queued"), seen("retrying"), seen("parked"),
			})
			require.NoError(t, err)
			for _, state := range []call.State{call.Queued, call.Retrying, call.Parked} {
				enter(t, s, 1, string(state), state)
			}
			for _, id := range []string{"seen", "held", "queued", "retrying", "parked"} {
				save(t, s, 1, id, "o", `"x"`)
				require.Equal(t, call.Succeeded, get(t, s, key(id)).State)
			}
		},
		"keeps the attempt of the record": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			move(t, s, 1, results.Move{Key: key("call_1"), To: call.Queued, Attempt: 2, Handover: 3})
			save(t, s, 1, "call_1", "o1", `"x"`)
			r := get(t, s, key("call_1"))
			require.Equal(t, 2, r.Attempt)
			require.Equal(t, 3, r.Handover)
		},
		"the same outcome again is a replay": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			first := complete(t, s, 1, completion("call_1", "o1", success(`"sunny"`)))
			again := complete(t, s, 1, completion("call_1", "o1", success(`"rainy"`)))
			first.Record, again.Record = still(first.Record), still(again.Record)
			require.Equal(t, first, again)
			require.Equal(t, success(`"sunny"`), *get(t, s, key("call_1")).Result)
		},
		"a replay after the end is still saved": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			save(t, s, 1, "call_1", "o1", `"sunny"`)
			enter(t, s, 1, "call_1", call.Settled)
			again := complete(t, s, 1, completion("call_1", "o1", success(`"sunny"`)))
			require.Equal(t, results.Saved, again.Verdict)
			require.Equal(t, call.Settled, again.Record.State)
			require.Nil(t, get(t, s, key("call_1")).Result, "the body is not brought back")
		},
		"another outcome is superseded and told the result": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			save(t, s, 1, "call_1", "o1", `"sunny"`)
			for _, state := range []call.State{call.Succeeded, call.Submitted} {
				if state == call.Submitted {
					enter(t, s, 1, "call_1", state)
				}
				late := complete(t, s, 1, completion("call_1", "o2", failure("late")))
				require.Equal(t, results.Superseded, late.Verdict)
				require.Equal(t, state, late.Record.State)
				require.Equal(t, "o1", late.Record.OutcomeID)
				require.Equal(t, success(`"sunny"`), *late.Record.Result)
			}
		},
		"an ended call supersedes without a body": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1", "call_2")
			save(t, s, 1, "call_1", "o1", `"sunny"`)
			enter(t, s, 1, "call_1", call.Obsolete)
			enter(t, s, 1, "call_2", call.Cancelled)
			for id, state := range map[string]call.State{"call_1": call.Obsolete, "call_2": call.Cancelled} {
				late := complete(t, s, 1, completion(id, "o2", success(`"late"`)))
				require.Equal(t, results.Superseded, late.Verdict)
				require.Equal(t, state, late.Record.State)
				require.Nil(t, late.Record.Result)
				require.Nil(t, get(t, s, key(id)).Result)
			}
		},
		"an empty outcome id is never a replay": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			save(t, s, 1, "call_1", "", `"sunny"`)
			require.Equal(t, results.Superseded, complete(t, s, 1, completion("call_1", "", success(`"x"`))).Verdict)
		},
		"an unknown call is left alone": func(t *testing.T, s results.Store) {
			require.Equal(t, results.Completed{Verdict: results.Unknown}, complete(t, s, 1, completion("call_1", "o1", success(`"x"`))))
			require.Equal(t, call.Absent, get(t, s, key("call_1")).State)
			all, err := s.Session(deadline(t), session)
			require.NoError(t, err)
			require.Empty(t, all)
		},
		"an unknown call is adopted on wish": func(t *testing.T, s results.Store) {
			c := completion("call_1", "o1", success(`"sunny"`))
			c.Adopt, c.Attempt = true, 3
			answer := complete(t, s, 1, c)
			require.Equal(t, results.Saved, answer.Verdict)
			r := get(t, s, key("call_1"))
			require.Equal(t, call.Succeeded, r.State)
			require.Equal(t, "get_weather", r.Function)
			require.Equal(t, 3, r.Attempt)
			require.Equal(t, success(`"sunny"`), *r.Result)
			require.WithinDuration(t, time.Now(), r.ClaimedAt, 10*time.Second)
			again := claim(t, s, 1, "call_1")[0]
			r.History = nil // which Claim does not read
			require.Equal(t, still(r), still(again))
			require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict)
		},
		"a known call is not adopted anew": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			c := completion("call_1", "o1", success(`"sunny"`))
			c.Adopt, c.Function, c.Attempt = true, "other", 7
			require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict)
			r := get(t, s, key("call_1"))
			require.Equal(t, "get_weather", r.Function)
			require.Zero(t, r.Attempt)
		},
		"a batch answers in order": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1", "call_3")
			answers, err := s.Complete(deadline(t), []uint64{1, 1, 1, 1}, []results.Completion{
				completion("call_3", "o3", failure("no")), completion("call_2", "o2", success(`"x"`)),
				completion("call_1", "o1", success(`"y"`)), completion("call_3", "o4", success(`"z"`)),
			})
			require.NoError(t, err)
			require.Equal(t, results.Saved, answers[0].Verdict)
			require.Equal(t, key("call_3"), answers[0].Record.Key)
			require.Equal(t, results.Unknown, answers[1].Verdict)
			require.Equal(t, results.Saved, answers[2].Verdict)
			require.Equal(t, key("call_1"), answers[2].Record.Key)
			require.Equal(t, results.Superseded, answers[3].Verdict)
			require.Equal(t, failure("no"), *answers[3].Record.Result)
		},
		"a batch spans sessions and turns": func(t *testing.T, s results.Store) {
			var completions []results.Completion
			var fences []uint64
			for i := range 40 {
				c := completion("call", fmt.Sprintf("o%d", i), success(fmt.Sprintf("%d", i)))
				c.Key = call.Key{Session: fmt.Sprintf("s%d", i%5), Turn: fmt.Sprintf("t%d", i%4), Call: fmt.Sprintf("c%d", i)}
				c.Adopt = true
				completions, fences = append(completions, c), append(fences, uint64(i%5+1))
			}
			answers, err := s.Complete(deadline(t), fences, completions)
			require.NoError(t, err)
			for i, a := range answers {
				require.Equal(t, results.Saved, a.Verdict)
				require.Equal(t, completions[i].Key, a.Record.Key)
				require.Equal(t, completions[i].Result, *get(t, s, completions[i].Key).Result)
			}
		},
		"fences must match the completions": func(t *testing.T, s results.Store) {
			_, err := s.Complete(deadline(t), nil, []results.Completion{completion("call_1", "o1", success(`"x"`))})
			require.Error(t, err)
		},
	})
	t.Run("the first of 16 writers wins", func(t *testing.T) {
		t.Parallel()
		one, two := b.pair(t)
		claim(t, one, 1, "call_1")
		answers := make([]results.Completed, 16)
		var wg sync.WaitGroup
		for i := range answers {
			s := one
			if i%2 == 1 {
				s = two
			}
			wg.Go(func() {
				c := completion("call_1", fmt.Sprintf("o%d", i), success(fmt.Sprintf("%d", i)))
				got, err := s.Complete(deadline(t), []uint64{1}, []results.Completion{c})
				if err == nil {
					answers[i] = got[0]
				}
			})
		}
		wg.Wait()
		kept := get(t, one, key("call_1"))
		saved := 0
		for i, a := range answers {
			require.NotZero(t, a.Verdict)
			require.Equal(t, kept.OutcomeID, a.Record.OutcomeID)
			if a.Verdict == results.Saved {
				saved++
				require.Equal(t, success(fmt.Sprintf("%d", i)), *kept.Result)
				continue
			}
			require.Equal(t, kept.Result, a.Record.Result)
		}
		require.Equal(t, 1, saved)
	})
}
