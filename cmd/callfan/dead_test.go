package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/programtest"
)

func TestDeadLettersAreListedShownReplayedAndDropped(t *testing.T) {
	t.Parallel()
	d := startDev(t, t.TempDir(), nil)
	dead := func(code int, args ...string) *programtest.Process {
		t.Helper()
		got, p := programtest.Run(t, d.callfan(t, append([]string{"dead"}, args...)...))
		require.Equal(t, code, got, p.Stderr)
		return p
	}
	require.Equal(t, "NUMBER  BURIED  FUNCTION  REASON  BYTES  DETAIL\n", dead(exitOK, "list").Stdout.String())

	nc, err := nats.Connect(d.nats)
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.Publish("fn.result.get_customer.p00", []byte("no <outcome>")))
	require.NoError(t, nc.Publish("fn.result.other.p00", []byte("\x00\xff")))
	var letters []ops.DeadLetter
	require.Eventually(t, func() bool {
		return json.Unmarshal([]byte(dead(exitOK, "list", "--json").Stdout.String()), &letters) == nil && len(letters) == 2
	}, time.Minute, 50*time.Millisecond)
	require.Equal(t, "other", letters[0].Function, "the newest first")
	require.Empty(t, letters[0].Bytes(), "no bodies in lists")

	table := dead(exitOK, "list", "--function", "get_customer").Stdout.String()
	require.Equal(t, 2, strings.Count(table, "\n"), table)
	require.Regexp(t, `(?m)^1 +20\S+ +get_customer +invalid_outcome +12 +\S`, table)
	require.NotContains(t, table, "<outcome>")
	require.Equal(t, 2, strings.Count(dead(exitOK, "list", "--limit", "1").Stdout.String(), "\n"))

	shown := dead(exitOK, "show", "1").Stdout.String()
	require.Regexp(t, `(?m)^subject +fn\.result\.get_customer\.p00$`, shown)
	require.True(t, strings.HasSuffix(shown, "\n\nno <outcome>\n"), shown)
	require.Contains(t, dead(exitOK, "show", "2").Stdout.String(), `"\x00\xff"`)
	var letter ops.DeadLetter
	require.NoError(t, json.Unmarshal([]byte(dead(exitOK, "show", "--json", "2").Stdout.String()), &letter))
	require.Equal(t, "\x00\xff", string(letter.Bytes()))

	require.Equal(t, "1 is published again; it stays here until it is dropped\n", dead(exitOK, "replay", "1").Stdout.String())
	dead(exitOK, "drop", "1", "2")
	require.Contains(t, dead(exitFailed, "show", "1").Stderr.String(), "there is no such dead letter: 1")
	require.Contains(t, dead(exitFailed, "replay", "2").Stderr.String(), "there is no such dead letter: 2")
	require.Contains(t, dead(exitFailed, "drop", "2").Stderr.String(), "there is no such dead letter: 2")
	require.Contains(t, dead(exitInvalid, "list", "--limit", "1001").Stderr.String(), "--limit is 1001; use 1 to 1000")
	require.Contains(t, dead(exitInvalid, "show", "x").Stderr.String(), "number")
	require.Equal(t, exitOK, d.Stop())
}
