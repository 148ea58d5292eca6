package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func testHistory(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"tells the life of a call": wholeLife,
		"begins with the claim": func(t *testing.T, s results.Store) {
			bring(t, s, "call_1", call.Held)
			require.Equal(t, []results.Step{{State: call.Held}}, history(t, s, "call_1"))
			claim(t, s, 1, "call_1")
			require.Equal(t, []results.Step{{State: call.Held}}, history(t, s, "call_1"))
			require.Equal(t, get(t, s, key("call_1")).ClaimedAt, get(t, s, key("call_1")).History[0].At)
		},
		"only Get and Session read it": func(t *testing.T, s results.Store) {
			require.Nil(t, claim(t, s, 1, "call_1")[0].History)
			require.Nil(t, claim(t, s, 1, "call_1")[0].History)
			for range 2 {
				require.Nil(t, complete(t, s, 1, completion("call_1", "o1", success("1"))).Record.History)
			}
			require.Nil(t, complete(t, s, 1, completion("call_1", "o2", success("2"))).Record.History)
			require.Nil(t, claim(t, s, 1, "call_1")[0].History)
			require.Nil(t, get(t, s, key("call_9")).History)
			require.Len(t, history(t, s, "call_1"), 2)
		},
		"requests that change nothing add nothing": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			for _, refused := range []results.Move{
				{Key: key("call_1"), To: call.Submitted, Note: "a"},
				{Key: key("call_1"), To: call.Succeeded, Note: "b"},
			} {
				require.False(t, move(t, s, 1, refused).Done)
			}
			late := completion("call_1", "o2", failure("late"))
			late.Note = "late"
			save(t, s, 1, "call_1", "o1", "1")
			require.Equal(t, results.Superseded, complete(t, s, 1, late).Verdict)
			require.Error(t, move(t, s, 0, results.Move{Key: key("call_1"), To: call.Submitted, Note: "c"}).Err)
			require.Equal(t, []results.Step{{State: call.Seen}, {State: call.Succeeded}}, history(t, s, "call_1"))
		},
		"an adopted call begins with its result": func(t *testing.T, s results.Store) {
			c := completion("call_1", "o1", failure("no"))
			c.Adopt, c.Attempt, c.Note = true, 3, "found in the stream"
			for range 2 {
				require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict)
			}
			require.Equal(t, []results.Step{{State: call.Failed, Attempt: 3, Note: "found in the stream"}}, history(t, s, "call_1"))
		},
		"something is noted without a change": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			queued := results.Move{Key: key("call_1"), To: call.Queued, Attempt: 1, Handover: 1, Note: "handed over"}
			note := func(text string) {
				t.Helper()
				m := queued
				m.Note = text
				require.Equal(t, results.Moved{Done: true, State: call.Queued}, move(t, s, 1, m))
			}
			note("handed over")
			note("handed over")
			note("")
			note("e1 has it")
			note("e1 has it")
			note("")
			note("e2 has it")
			note("e1 has it")
			require.Equal(t, []results.Step{
				{State: call.Seen},
				{State: call.Queued, Attempt: 1, Handover: 1, Note: "handed over"},
				{State: call.Queued, Attempt: 1, Handover: 1, Note: "e1 has it"},
				{State: call.Queued, Attempt: 1, Handover: 1, Note: "e2 has it"},
				{State: call.Queued, Attempt: 1, Handover: 1, Note: "e1 has it"},
			}, history(t, s, "call_1"))
		},
		"a note does not restart Since": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			require.Eventually(t, func() bool {
				return get(t, s, key("call_1")).Since >= 100*time.Millisecond
			}, patience, 20*time.Millisecond)
			require.True(t, move(t, s, 1, results.Move{Key: key("call_1"), To: call.Seen, Note: "still here"}).Done)
			r := get(t, s, key("call_1"))
			require.GreaterOrEqual(t, r.Since, 100*time.Millisecond)
			require.GreaterOrEqual(t, r.History[1].At.Sub(r.ClaimedAt), 100*time.Millisecond)
		},
		"an ended call is noted on": func(t *testing.T, s results.Store) {
			bring(t, s, "call_1", call.Cancelled)
			require.True(t, move(t, s, 1, results.Move{Key: key("call_1"), To: call.Cancelled, Note: "work stopped"}).Done)
			require.Equal(t, []results.Step{
				{State: call.Seen}, {State: call.Cancelled}, {State: call.Cancelled, Note: "work stopped"},
			}, history(t, s, "call_1"))
		},
		"notes are kept on one line": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			for _, c := range []struct{ note, kept string }{
				{"two\nlines", "two lines"},
				{"and\r\nthese\rtoo\n", "and these too "},
				{"\n\nq5.1.1 forged", "  q5.1.1 forged"},
				{" \x00 \"%\\ s1.2.3", " \x00 \"%\\ s1.2.3"},
			} {
				for range 2 {
					require.True(t, move(t, s, 1, results.Move{Key: key("call_1"), To: call.Seen, Note: c.note}).Done)
				}
				steps := history(t, s, "call_1")
				require.Equal(t, c.kept, steps[len(steps)-1].Note)
			}
			require.Len(t, history(t, s, "call_1"), 5)
		},
		"long notes are cut between runes": longNotes,
		"odd functions and outcomes":       oddHistories,
		"a long history loses its middle":  longHistory,
		"a turn of many long histories": func(t *testing.T, s results.Store) {
			ids := make([]string, 500)
			for i := range ids {
				ids[i] = fmt.Sprintf("call_%d", i)
			}
			claim(t, s, 1, ids...)
			for n := range 8 {
				moves := make([]results.Move, len(ids))
				for i, id := range ids {
					moves[i] = results.Move{Key: key(id), To: call.Seen, Note: fmt.Sprint(n, strings.Repeat("n", results.MaxNote))}
				}
				moved, err := s.Move(deadline(t), 1, moves)
				require.NoError(t, err)
				require.True(t, moved[0].Done)
			}
			records, err := s.Session(deadline(t), session)
			require.NoError(t, err)
			require.Len(t, records, len(ids))
		},
	})
}

// wholeLife leads a call through a retry, the hands of an operator and the end.
func wholeLife(t *testing.T, s results.Store) {
	claim(t, s, 1, "call_1")
	for _, m := range []results.Move{
		{To: call.Queued, Attempt: 1, Handover: 1},
		{To: call.Retrying, Note: "e1: connection refused"},
		{To: call.Seen, Attempt: 2, Handover: 2},
		{To: call.Queued},
		{To: call.Parked, Note: "e2 left; cannot tell"},
		{To: call.Seen, Attempt: 3, Handover: 3, Note: "an operator: rerun"},
		{To: call.Parked},
	} {
		m.Key = key("call_1")
		for range 2 { // and a replay
			require.Equal(t, results.Moved{Done: true, State: m.To}, move(t, s, 1, m))
		}
	}
	c := completion("call_1", "o1", success(`"sunny"`))
	c.Note = "an operator: done"
	for range 2 {
		require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict)
	}
	for _, m := range []results.Move{{To: call.Submitted, Note: "batch 7"}, {To: call.Settled}} {
		m.Key = key("call_1")
		for range 2 {
			require.Equal(t, results.Moved{Done: true, State: m.To}, move(t, s, 1, m))
		}
	}
	require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict, "a replay after the end")
	require.Equal(t, []results.Step{
		{State: call.Seen},
		{State: call.Queued, Attempt: 1, Handover: 1},
		{State: call.Retrying, Attempt: 1, Handover: 1, Note: "e1: connection refused"},
		{State: call.Seen, Attempt: 2, Handover: 2},
		{State: call.Queued, Attempt: 2, Handover: 2},
		{State: call.Parked, Attempt: 2, Handover: 2, Note: "e2 left; cannot tell"},
		{State: call.Seen, Attempt: 3, Handover: 3, Note: "an operator: rerun"},
		{State: call.Parked, Attempt: 3, Handover: 3},
		{State: call.Succeeded, Attempt: 3, Handover: 3, Note: "an operator: done"},
		{State: call.Submitted, Attempt: 3, Handover: 3, Note: "batch 7"},
		{State: call.Settled, Attempt: 3, Handover: 3},
	}, history(t, s, "call_1"))
	all, err := s.Session(deadline(t), session)
	require.NoError(t, err)
	require.Equal(t, get(t, s, key("call_1")).History, all[0].History)
}

func longNotes(t *testing.T, s results.Store) {
	claim(t, s, 1, "call_1")
	for lead := range 5 {
		for _, r := range []string{"a", "ü", "日", "🙂", "\xff"} {
			note := strings.Repeat("x", lead) + strings.Repeat(r, results.MaxNote)
			for range 2 {
				require.True(t, move(t, s, 1, results.Move{Key: key("call_1"), To: call.Seen, Note: note}).Done)
			}
			steps := history(t, s, "call_1")
			kept := steps[len(steps)-1].Note
			require.True(t, strings.HasPrefix(note, kept))
			require.LessOrEqual(t, len(kept), results.MaxNote)
			require.Greater(t, len(kept), results.MaxNote-len(r), "no more than needed is cut")
			require.True(t, r == "\xff" || utf8.ValidString(kept))
			if len(steps) > 1 {
				require.NotEqual(t, steps[len(steps)-2].Note, kept, "a replay of a note that is cut")
			}
		}
	}
	claim(t, s, 1, "call_2")
	c := completion("call_2", "o1", success("1"))
	c.Note = strings.Repeat("日", results.MaxNote) + "\n"
	require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict)
	require.Equal(t, strings.Repeat("日", results.MaxNote/3), history(t, s, "call_2")[1].Note)
}

// oddHistories holds that no function, outcome or note is taken for another.
func oddHistories(t *testing.T, s results.Store) {
	for i, text := range append(oddIDs, "\n", "\\n", `\`, `\\n`, "f\nq1.1.1 note", "") {
		id := fmt.Sprintf("call_%d", i)
		_, err := s.Claim(deadline(t), 1, []results.Claim{{Key: key(id), Function: text, State: call.Seen}})
		require.NoError(t, err)
		require.True(t, move(t, s, 1, results.Move{Key: key(id), To: call.Queued, Attempt: 1, Handover: 1, Note: "n"}).Done)
		c := results.Completion{Key: key(id), Result: success("1"), OutcomeID: "o" + text, Note: "saved"}
		for range 2 {
			answer := complete(t, s, 1, c)
			require.Equal(t, results.Saved, answer.Verdict)
			require.Equal(t, "o"+text, answer.Record.OutcomeID)
		}
		c.OutcomeID += "\n"
		require.Equal(t, results.Superseded, complete(t, s, 1, c).Verdict)
		r := get(t, s, key(id))
		require.Equal(t, text, r.Function)
		require.Equal(t, "o"+text, r.OutcomeID)
		require.Equal(t, []results.Step{
			{State: call.Seen},
			{State: call.Queued, Attempt: 1, Handover: 1, Note: "n"},
			{State: call.Succeeded, Attempt: 1, Handover: 1, Note: "saved"},
		}, history(t, s, id))
	}
}

// longHistory holds that of many steps the first and the newest stay, each whole.
func longHistory(t *testing.T, s results.Store) {
	claim(t, s, 1, "call_1")
	const attempts = 300
	note := func(attempt int) string {
		return fmt.Sprint(attempt, strings.Repeat(" because", attempt%26))
	}
	for attempt := 1; attempt <= attempts; attempt++ {
		for range 2 { // and a replay
			m := results.Move{Key: key("call_1"), To: call.Seen, Attempt: attempt, Note: note(attempt)}
			require.True(t, move(t, s, 1, m).Done)
		}
	}
	steps := history(t, s, "call_1")
	require.Equal(t, results.Step{State: call.Seen}, steps[0])
	size, gaps := 0, 0
	for i, step := range steps[1:] {
		want := note(step.Attempt)
		want = want[:min(len(want), results.MaxNote)]
		require.Equal(t, results.Step{State: call.Seen, Attempt: step.Attempt, Note: want}, step)
		size += len(step.Note)
		if step.Attempt != steps[i].Attempt+1 {
			gaps++
			require.Greater(t, i, 2, "the first few stay")
		}
	}
	require.Equal(t, 1, gaps, "one gap, in the middle")
	require.Equal(t, attempts, steps[len(steps)-1].Attempt)
	require.Greater(t, len(steps), 15)
	require.Less(t, size, 4<<10)
	save(t, s, 1, "call_1", "o1", "1")
	enter(t, s, 1, "call_1", call.Settled)
	after := history(t, s, "call_1")
	require.Equal(t, call.Settled, after[len(after)-1].State)
	require.Equal(t, steps[:3], after[:3])
}

// history reads the steps of a call, checks their times and removes them.
func history(t *testing.T, s results.Store, id string) []results.Step {
	t.Helper()
	r := get(t, s, key(id))
	steps := slices.Clone(r.History)
	latest := r.ClaimedAt
	for i := range steps {
		require.False(t, steps[i].At.Before(latest), "a step before the one before it")
		require.Less(t, steps[i].At.Sub(r.ClaimedAt), 2*time.Minute)
		latest, steps[i].At = steps[i].At, time.Time{}
	}
	return steps
}
