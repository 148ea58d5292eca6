//go:build unix

package executor_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/processgroup"
	"github.com/callfan/callfan/pkg/executor"
)

// An executor process is frozen with a call in its socket that it has not read. Another one gets the call when the
// lease runs out, verifies it, and runs it. The first must not start it when it goes on: its delivery looks like the
// first one.
func TestNATSFrozenExecutorDoesNotStartACallThatAnotherHas(t *testing.T) {
	t.Parallel()
	i := install(t)
	ledger := filepath.Join(t.TempDir(), "ledger")
	self, err := os.Executable()
	require.NoError(t, err)
	frozen := exec.Command(self)
	frozen.Env = append(os.Environ(), "EXECUTOR_PLAY="+strings.Join([]string{i.server.URL(), ledger, "before"}, " "), "GORACE=atexit_sleep_ms=0")
	out, err := frozen.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, frozen.Start())
	entered := make(chan struct{})
	go func() {
		if bufio.NewScanner(out).Scan() {
			close(entered)
		}
	}()
	t.Cleanup(func() { _ = frozen.Process.Kill(); _ = frozen.Wait() })
	require.Eventually(t, func() bool { return i.consumer().NumWaiting > 0 }, 20*time.Second, 10*time.Millisecond, "it does not pull")
	require.NoError(t, frozen.Process.Signal(syscall.SIGSTOP))
	require.NoError(t, processgroup.AwaitStopped(frozen.Process.Pid))

	d := newCall("charge", 1, `{}`)
	i.dispatch(d)
	require.Eventually(t, func() bool { return i.consumer().NumAckPending == 1 }, 20*time.Second, 10*time.Millisecond, "it was not sent the call")
	i.run(executor.Config{}, charging(ledger, func(context.Context, bool) {}, lookIntoLedger(ledger)))
	i.await(1)
	i.awaitEmpty()
	require.NoError(t, frozen.Process.Signal(syscall.SIGCONT))
	select {
	case <-entered:
		t.Fatal("the frozen executor started a call that another one had")
	case <-time.After(2 * time.Second):
	}
	lines, err := os.ReadFile(ledger)
	require.NoError(t, err)
	require.Equal(t, d.IdempotencyKey()+"\n", string(lines))
}
