package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

func TestCheckMakesACallTravel(t *testing.T) {
	t.Parallel()
	d := startDev(t, t.TempDir(), nil)
	code, p := programtest.Run(t, d.callfan(t, "check"))
	require.Equal(t, exitOK, code, p.Stderr)
	require.Contains(t, p.Stdout.String(), "A call went from the API over the dispatcher and NATS to an executor, and its result back to the agent")

	// What is missing is named.
	c := d.callfan(t, "check", "--timeout", "1s", "--prefix", "nobody")
	code, p = programtest.Run(t, c)
	require.Equal(t, exitFailed, code)
	require.Contains(t, p.Stderr.String(), "no dispatcher has answered yet")
	require.Contains(t, p.Stderr.String(), "the check took longer than 1s")
	c = d.callfan(t, "check")
	c.Env = append(c.Env, "CALLFAN_DISPATCHER=http://127.0.0.1:1")
	code, p = programtest.Run(t, c)
	require.Equal(t, exitFailed, code)
	require.Contains(t, p.Stderr.String(), "is not watched")
	require.Equal(t, exitOK, d.Stop())
}
