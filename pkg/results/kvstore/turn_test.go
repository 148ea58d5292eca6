package kvstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// TestTurnsWithoutHistories holds that turns which an earlier version wrote are read.
func TestTurnsWithoutHistories(t *testing.T) {
	t.Parallel()
	var e encoder
	e.uint(1)
	e.text("sess")
	e.text("turn")
	e.uint(7)
	e.uint(2)
	for _, id := range []string{"a", "b"} {
		e.text(id)
		e.text("f")
		e.text(string(call.Queued))
		for _, n := range []uint64{2, 3, 1000, 1500} {
			e.uint(n)
		}
		e.text("")
		e.text("")
	}
	old, err := decodeTurn(e.b)
	require.NoError(t, err)
	require.Equal(t, 2, old.index["b"].attempt)
	require.Empty(t, old.index["b"].steps())
	old.index["b"].step(2500, "noted")
	again, err := decodeTurn(old.encode())
	require.NoError(t, err)
	require.Equal(t, old.index["b"].steps(), again.index["b"].steps())
	require.Equal(t, "noted", again.index["b"].steps()[0].Note)
	require.Equal(t, int64(2500), again.index["b"].steps()[0].At.UnixMilli())

	_, err = decodeTurn([]byte{turnVersion + 1})
	require.ErrorIs(t, err, errMalformed)
}

// TestHistoriesOfATurnAreBounded holds that a turn of a thousand calls fits into a
// message, and that what is left out is the middle.
func TestHistoriesOfATurnAreBounded(t *testing.T) {
	t.Parallel()
	turn := newTurn(turnID{"sess", "turn"})
	for i := range 1000 {
		c := &entryOfCall{call: fmt.Sprint(i), state: call.Seen}
		c.step(0, "")
		for range 10 {
			c.step(1, strings.Repeat("n", results.MaxNote))
		}
		c.state = call.Settled
		c.step(2, "")
		turn.add(c)
	}
	turn.boundHistories()
	require.Less(t, len(turn.encode()), 512<<10)
	for _, c := range turn.calls {
		steps := c.steps()
		require.Equal(t, call.Seen, steps[0].State)
		require.Equal(t, call.Settled, steps[len(steps)-1].State)
	}
}
