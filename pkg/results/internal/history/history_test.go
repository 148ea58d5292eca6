package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/internal/history"
)

var claimed = time.UnixMilli(1_700_000_000_123)

func TestEachStateHasItsLetter(t *testing.T) {
	t.Parallel()
	for _, state := range call.States()[1:] {
		require.Len(t, history.Letters[state], 1)
		require.Equal(t, state, history.States[history.Letters[state]])
	}
	require.Len(t, history.States, len(call.States())-1)
}

func TestParseReadsWhatAppendWrote(t *testing.T) {
	t.Parallel()
	text := history.Append(nil, call.Seen, 0, 0, 0, "")
	text = history.Append(text, call.Queued, 1500*time.Millisecond, 2, 13, "to e1: two  words")
	require.Equal(t, "\ns0.0.0\nq1500.2.13 to e1: two  words", string(text))
	require.Equal(t, "to e1: two  words", history.LatestNote(text))
	require.Equal(t, []results.Step{
		{At: claimed, State: call.Seen},
		{At: claimed.Add(1500 * time.Millisecond), State: call.Queued, Attempt: 2, Handover: 13, Note: "to e1: two  words"},
	}, history.Parse(string(text), claimed))
}

func TestParseLeavesOutWhatItCannotRead(t *testing.T) {
	t.Parallel()
	steps := history.Parse("\ns0.0.0\n\nz1.1.1 later version\nq\nq1\nqx.1.1\nq1.1.x\n\nq20.1.1\nr10.1.1 clock set back", claimed)
	require.Equal(t, []results.Step{
		{At: claimed, State: call.Seen},
		{At: claimed.Add(20 * time.Millisecond), State: call.Queued, Attempt: 1, Handover: 1},
		{At: claimed.Add(20 * time.Millisecond), State: call.Retrying, Attempt: 1, Handover: 1, Note: "clock set back"},
	}, steps)
	require.Empty(t, history.Parse("", claimed))
	require.Empty(t, history.LatestNote(nil))
}

func TestCutKeepsWholeSteps(t *testing.T) {
	t.Parallel()
	var text []byte
	whole := map[string]bool{}
	for i := range 60 {
		before := len(text)
		text = history.Append(text, call.Queued, time.Second, i, i, strings.Repeat("n", i*7%results.MaxNote))
		whole[string(text[before+1:])] = true
	}
	for limit := range len(text) + 1 {
		cut := history.Cut(text, limit)
		require.LessOrEqual(t, len(cut), limit)
		if len(cut) == 0 {
			require.Less(t, limit, 220)
			continue
		}
		for piece := range strings.SplitSeq(string(cut[1:]), "\n") {
			require.True(t, whole[piece], "%d: %q", limit, piece)
		}
		if limit >= 2*results.MaxNote+40 {
			require.True(t, strings.HasSuffix(string(text), string(cut[strings.LastIndex(string(cut), "\n"):])))
		}
	}
	require.Equal(t, text, history.Cut(text, len(text)))
}

func TestNote(t *testing.T) {
	t.Parallel()
	for note, want := range map[string]string{
		"":                             "",
		"a\r\nb\nc\rd":                 "a b c d",
		strings.Repeat("x", 201):       strings.Repeat("x", 200),
		strings.Repeat("x", 199) + "ü": strings.Repeat("x", 199),
		strings.Repeat("x", 198) + "ü": strings.Repeat("x", 198) + "ü",
		strings.Repeat("\x80", results.MaxNote+50): strings.Repeat("\x80", results.MaxNote-4),
	} {
		require.Equal(t, want, history.Note(note), "%q", note)
	}
}
