package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

func TestSessionsWatchUnwatchAndList(t *testing.T) {
	t.Parallel()
	// An API that is not the simulator of dev itself: nothing is watched by itself.
	_, url := simulate(t)
	d := programtest.Start(t, programtest.Command{
		Path: programtest.Build(t, "cmd/callfan"),
		Args: []string{"dev", "--dir", t.TempDir(), "--nats-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"},
		Env:  []string{"OPENAI_BASE_URL=" + url},
	})
	d.Await(d.Stdout, "callfan sessions watch ID\n")
	_, admin, found := strings.Cut(d.Stdout.String(), "health, admin  ")
	require.True(t, found)
	admin, _, _ = strings.Cut(admin, "\n")
	sessions := func(args ...string) string {
		t.Helper()
		c := command(t, append([]string{"sessions"}, args...)...)
		c.Env = []string{"CALLFAN_DISPATCHER=" + admin}
		code, p := programtest.Run(t, c)
		require.Equal(t, exitOK, code)
		require.Empty(t, p.Stderr.String())
		return p.Stdout.String()
	}
	header := "SESSION  PARTITION  STATUS  OPEN  PARKED  SAVED  LOOKED AT  TROUBLE  DRIFT\n"
	require.Equal(t, header, sessions("list"))
	require.Equal(t, "[]\n", strings.ReplaceAll(sessions("list", "--json"), "null", "[]"))

	one, two := newSession(t, url, "hello").ID, newSession(t, url, "hello").ID
	require.Empty(t, sessions("watch", one, two))
	require.Empty(t, sessions("watch", one), "again")
	require.Eventually(t, func() bool {
		list := sessions("list")
		return strings.Contains(list, one) && strings.Contains(list, two) && strings.Count(list, "idle") == 2
	}, time.Minute, 50*time.Millisecond)
	require.Empty(t, sessions("unwatch", one))
	require.Eventually(t, func() bool { return !strings.Contains(sessions("list"), one) }, time.Minute, 50*time.Millisecond)
	require.Contains(t, sessions("list"), two)

	bad := command(t, "sessions", "watch", "--dispatcher", admin, "bad id")
	code, p := programtest.Run(t, bad)
	require.Equal(t, exitFailed, code, p.Stdout)
	require.NotEmpty(t, p.Stderr.String())

	away := command(t, "sessions", "list", "--dispatcher", "http://127.0.0.1:1")
	code, p = programtest.Run(t, away)
	require.Equal(t, exitFailed, code)
	require.Contains(t, p.Stderr.String(), "start one, or name its address and port")
	require.Equal(t, exitOK, d.Stop())
}
