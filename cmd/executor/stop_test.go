//go:build unix

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

const patience = 40 * time.Second

// TestMain lets the test binary be the program.
func TestMain(m *testing.M) {
	if os.Getenv("CALLFAN_TEST_PROGRAM") == "executor" {
		main()
	}
	os.Exit(m.Run())
}

// installation is a nats-server and the dispatcher's side of the queue.
type installation struct {
	t        *testing.T
	url      string
	conn     *queue.Conn
	registry *queue.Registry
	outcomes chan call.Outcome
}

func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, url: testservers.NATS(t).URL(), outcomes: make(chan call.Outcome, 10)}
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	i.conn, err = queue.Connect(ctx, queue.Config{URL: i.url, Partitions: 1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, i.conn.Provision(ctx))
	i.registry, err = i.conn.ServeRegistry(ctx)
	require.NoError(t, err)
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		_ = i.conn.Consume(ctx, 0, func(batch []call.Delivered) {
			for _, d := range batch {
				i.outcomes <- d.Outcome
				d.Ack()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-consumed
		i.conn.Close()
	})
	return i
}

// execute starts the program on this file. stop sends SIGTERM, awaits the end, and says
// how long that took.
func (i *installation) execute(functions string, flags ...string) (dir string, stop func() time.Duration) {
	i.t.Helper()
	dir = i.t.TempDir()
	file := filepath.Join(dir, "functions.yaml")
	require.NoError(i.t, os.WriteFile(file, []byte(functions), 0o600))
	program := exec.Command(os.Args[0], append(flags, file)...)
	program.Env = append(os.Environ(), "CALLFAN_TEST_PROGRAM=executor", "NATS_URL="+i.url)
	program.Stderr = i.t.Output()
	require.NoError(i.t, program.Start())
	exited := make(chan error, 1)
	go func() { exited <- program.Wait() }()
	i.t.Cleanup(func() { _ = program.Process.Kill() })
	return dir, func() time.Duration {
		i.t.Helper()
		began := time.Now()
		require.NoError(i.t, program.Process.Signal(syscall.SIGTERM))
		select {
		case err := <-exited:
			require.NoError(i.t, err)
		case <-time.After(patience):
			require.Fail(i.t, "the executor did not stop")
		}
		return time.Since(began)
	}
}

// start hands over a call of slow and waits until it runs.
func (i *installation) start(dir string) {
	i.t.Helper()
	require.Eventually(i.t, func() bool { _, there := i.registry.Function("slow"); return there }, patience, 10*time.Millisecond)
	d := call.Dispatch{
		Call:    call.Call{Key: call.Key{Session: "s", Turn: "t", Call: "c"}, Function: "slow", Arguments: json.RawMessage(`{}`)},
		Attempt: 1, Handover: 1, Nonce: "1-x", Timeout: patience, Deadline: time.Now().Add(time.Minute),
	}
	require.NoError(i.t, i.conn.Publish(i.t.Context(), []call.Dispatch{d})[0])
	require.Eventually(i.t, func() bool { _, err := os.Stat(filepath.Join(dir, "started")); return err == nil }, patience, 10*time.Millisecond)
}

func (i *installation) outcome() call.Outcome {
	i.t.Helper()
	select {
	case o := <-i.outcomes:
		return o
	case <-time.After(patience):
		require.Fail(i.t, "no outcome")
		return call.Outcome{}
	}
}

func (i *installation) left() uint64 {
	i.t.Helper()
	stream, err := i.conn.JetStream().Stream(i.t.Context(), "FN_CALLS")
	require.NoError(i.t, err)
	return stream.CachedInfo().State.Msgs
}

func TestSIGTERMFinishesTheRunningCall(t *testing.T) {
	t.Parallel()
	i := install(t)
	dir, stop := i.execute(`pool: tools
functions:
  slow: {exec: {command: [sh, -c, "touch started; sleep 1; echo done"]}}
`, "--name", "worker 7")
	i.start(dir)
	stop()
	o := i.outcome()
	require.Equal(t, `"done\n"`, string(o.Output))
	require.Equal(t, "worker 7", o.Executor)
	require.Eventually(t, func() bool { return i.left() == 0 }, patience, 10*time.Millisecond)
}
