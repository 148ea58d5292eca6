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

// TestMain lets the test binary be the program.
func TestMain(m *testing.M) {
	if os.Getenv("CALLFAN_TEST_PROGRAM") == "executor" {
		main()
	}
	os.Exit(m.Run())
}

func TestSIGTERMFinishesTheRunningCall(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := queue.Connect(ctx, queue.Config{URL: server.URL(), Partitions: 1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer conn.Close()
	defer cancel()
	require.NoError(t, conn.Provision(ctx))
	registry, err := conn.ServeRegistry(ctx)
	require.NoError(t, err)

	dir := t.TempDir()
	file := filepath.Join(dir, "functions.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`pool: tools
functions:
  slow: {exec: {command: [sh, -c, "touch started; sleep 1; echo done"]}}
`), 0o600))
	program := exec.CommandContext(ctx, os.Args[0], file)
	program.Env = append(os.Environ(), "CALLFAN_TEST_PROGRAM=executor", "NATS_URL="+server.URL())
	program.Stderr = t.Output()
	require.NoError(t, program.Start())
	exited := make(chan error, 1)
	go func() { exited <- program.Wait() }()

	require.Eventually(t, func() bool { _, there := registry.Function("slow"); return there }, 20*time.Second, 10*time.Millisecond)
	d := call.Dispatch{
		Call:    call.Call{Key: call.Key{Session: "s", Turn: "t", Call: "c"}, Function: "slow", Arguments: json.RawMessage(`{}`)},
		Attempt: 1, Handover: 1, Nonce: "1-x", Timeout: 20 * time.Second, Deadline: time.Now().Add(time.Minute),
	}
	require.NoError(t, conn.Publish(ctx, []call.Dispatch{d})[0])
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "started")); return err == nil }, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-exited:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "the executor did not stop")
	}
	outcomes := make(chan call.Outcome, 1)
	consuming, stop := context.WithCancel(ctx)
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		_ = conn.Consume(consuming, 0, func(batch []call.Delivered) {
			for _, d := range batch {
				outcomes <- d.Outcome
				d.Ack()
			}
		})
	}()
	select {
	case o := <-outcomes:
		require.Equal(t, `"done\n"`, string(o.Output))
	case <-time.After(20 * time.Second):
		require.Fail(t, "no outcome")
	}
	stop()
	<-consumed
}
