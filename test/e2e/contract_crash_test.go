package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

// redefine replaces the functions of the installation by programs; each notes its run.
func (i *installation) redefine(functions, program string) {
	i.t.Helper()
	write(i.t, filepath.Join(filepath.Dir(i.functions), "run.sh"), "#!/bin/sh\necho \"$FN_CALL_ID\" >> runs.txt\n"+program, 0o700)
	write(i.t, i.functions, "pool: things\nfunctions:\n"+functions, 0o600)
}

// TestContract_ExecutorExits kills the executor in a call; another one runs the call again, since that does no harm.
func TestContract_ExecutorExits(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.redefine("  slow: {effects: idempotent, exec: {command: [./run.sh]}}\n", "sleep 1\necho done\n")
	dispatcher, first := i.dispatch("fn"), i.execute("fn")
	first.Await(first.Stderr, "executor serves")
	dispatcher.awaitReady(t)
	session := i.watched(dispatcher, `{"rounds":[[{"name":"slow","arguments":{},"call_id":"a"}]],"say":"done"}`)
	require.Eventually(t, func() bool { _, err := os.Stat(i.runs); return err == nil }, patience, 5*time.Millisecond)
	first.Kill()
	second := i.execute("fn")
	i.awaitIdle(session)
	require.Equal(t, map[string]string{"a": "done\n"}, i.outputs(session))
	require.Equal(t, []string{"a", "a"}, i.ran())
	i.awaitEmptyStreams()
	require.Equal(t, 0, second.Stop())
	require.Equal(t, 0, dispatcher.Stop())
}

// TestContract_FunctionKillsItsExecutors: a call that kills whoever runs it is answered after three of them, and other
// calls are served. It takes a while to kill: calls that run beside it each time cannot be told from it.
func TestContract_FunctionKillsItsExecutors(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.redefine(`  slow: {effects: none, exec: {command: [./run.sh]}}
  count: {effects: none, exec: {command: [./run.sh]}}
`, `if [ "$FN_FUNCTION" = slow ]; then sleep 2; kill -9 $PPID; sleep 5; fi
echo done
`)
	dispatcher := i.dispatch("fn")
	dispatcher.awaitReady(t)
	started := 1
	executor := i.execute("fn")
	executor.Await(executor.Stderr, "executor serves")
	session := i.watched(dispatcher, `{"rounds":[[{"name":"slow","arguments":{},"call_id":"poison"},{"name":"count","arguments":{},"call_id":"a"},{"name":"count","arguments":{},"call_id":"b"}]],"say":"done"}`)
	for deadline := time.Now().Add(patience); !i.isIdle(session); {
		if !executor.Running() { // somebody starts it again
			executor = i.execute("fn")
			started++
		}
		require.True(t, time.Now().Before(deadline), "the turn did not end")
	}
	got := i.outputs(session)
	require.Contains(t, got["poison"], "function crashed")
	require.Equal(t, "done\n", got["a"])
	require.Equal(t, "done\n", got["b"])
	require.Equal(t, 4, started, "three crashed")
	require.Equal(t, 3, count(i.ran(), "poison"))
	i.awaitEmptyStreams()
	require.Equal(t, 0, executor.Stop())
	require.Equal(t, 0, dispatcher.Stop())
}

// watched creates a session and has a dispatcher watch it.
func (i *installation) watched(d *daemon, text string) string {
	i.t.Helper()
	session := i.create(text)
	code, p := programtest.Run(i.t, programtest.Command{
		Path: programtest.Build(i.t, "cmd/callfan"), Args: []string{"sessions", "watch", session},
		Env: []string{"CALLFAN_DISPATCHER=" + d.admin},
	})
	require.Equal(i.t, 0, code, p.Stderr)
	return session
}
