package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/testservers"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	api := "--openai-base-url=http://127.0.0.1:1/v1"
	for name, tt := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"version":       {[]string{"--version"}, 0, config.BuildVersion() + "\n", ""},
		"help":          {[]string{"--help"}, 0, "--openai-api-key-file", ""},
		"unknown flag":  {[]string{"--lingr=1s"}, 2, "", `dispatcher: unknown flag --lingr, did you mean "--linger"?`},
		"no API":        {nil, 2, "", "dispatcher: no API key: set OPENAI_API_KEY"},
		"open door":     {[]string{api, "--listen=0.0.0.0:0"}, 2, "", "CALLFAN_ADMIN_TOKEN"},
		"checked":       {[]string{api, "--check-config", "--nats=nats://127.0.0.1:1"}, 0, "", ""},
		"checked, bad":  {[]string{api, "--check-config", "--nats-nkey=missing"}, 2, "", "missing"},
		"several users": {[]string{api, "--check-config", "--nats-user=u", "--nats-creds=f"}, 2, "", "keep one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			require.Equal(t, tt.code, run(tt.args, &stdout, &stderr), stderr.String())
			require.Contains(t, stdout.String(), tt.stdout)
			require.Contains(t, stderr.String(), tt.stderr)
			if tt.code == 0 {
				require.Empty(t, stderr.String())
			} else {
				require.Empty(t, stdout.String())
			}
		})
	}
}

func TestFailsWhileItRuns(t *testing.T) {
	t.Parallel()
	nats, redis := testservers.NATS(t), testservers.Redis(t, testservers.RedisMaxMemoryPolicy("allkeys-lru"))
	var stdout, stderr bytes.Buffer
	code := run([]string{
		"--openai-base-url=http://127.0.0.1:1/v1", "--listen=127.0.0.1:0", "--nats=" + nats.URL(), "--redis=" + redis.URL(),
	}, &stdout, &stderr)
	require.Equal(t, 1, code)
	require.Contains(t, stderr.String(), "noeviction")
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "callfan-dispatcher-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "dispatcher")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return path, nil
})

func TestMain(m *testing.M) {
	for _, entry := range os.Environ() { // no part of these tests
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OPENAI_") || strings.HasPrefix(name, "CALLFAN_") ||
			strings.HasPrefix(name, "NATS_") || strings.HasPrefix(name, "REDIS_") {
			_ = os.Unsetenv(name)
		}
	}
	code := m.Run()
	if path, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// daemon is the program as a process.
type daemon struct {
	*exec.Cmd
	log    *lockedBuffer
	exited chan error
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func start(t *testing.T, args ...string) *daemon {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	d := &daemon{
		Cmd: exec.CommandContext(ctx, path, append([]string{"--openai-base-url=http://127.0.0.1:1/v1", "--listen=127.0.0.1:0"}, args...)...),
		log: &lockedBuffer{}, exited: make(chan error, 1),
	}
	d.Stderr = d.log
	require.NoError(t, d.Start())
	gone := make(chan struct{})
	go func() { d.exited <- d.Wait(); close(gone) }()
	t.Cleanup(func() { cancel(); <-gone })
	return d
}

func (d *daemon) awaitLog(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(d.log.String(), text) }, 20*time.Second, 10*time.Millisecond, d.log)
}

func TestStopsOnSIGTERM(t *testing.T) {
	t.Parallel()
	nats := testservers.NATS(t)
	d := start(t, "--nats="+nats.URL(), "--log-format=json", "--partitions=2")
	d.awaitLog(t, `"msg":"running"`)
	d.stopsInOrder(t)
}

func TestStopsOnSIGTERMWhileItStarts(t *testing.T) {
	t.Parallel()
	nats := testservers.NATS(t)
	d := start(t, "--nats="+nats.URL(), "--log-format=json", "--partitions=2")
	d.awaitLog(t, `"msg":"the results store is open"`)
	d.stopsInOrder(t)
}

func (d *daemon) stopsInOrder(t *testing.T) {
	t.Helper()
	require.NoError(t, d.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-d.exited:
		require.NoError(t, err, d.log)
	case <-time.After(20 * time.Second):
		t.Fatal(d.log)
	}
	require.Contains(t, d.log.String(), `"msg":"stopped"`)
}

func TestSecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	nats := testservers.NATS(t)
	d := start(t, "--nats="+nats.URL(), "--stop-timeout=1h", "--partitions=2")
	d.awaitLog(t, "msg=running")
	nats.Pause() // so that it cannot stop in order
	t.Cleanup(nats.Resume)
	require.NoError(t, d.Process.Signal(syscall.SIGTERM))
	d.awaitLog(t, "stopping")
	deadline := time.After(20 * time.Second)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case err := <-d.exited:
			require.ErrorContains(t, err, "terminated")
			return
		case <-again.C:
			_ = d.Process.Signal(syscall.SIGTERM)
		case <-deadline:
			t.Fatal(d.log)
		}
	}
}
