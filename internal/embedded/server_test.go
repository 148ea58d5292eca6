package embedded_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func connect(t *testing.T, s *embedded.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func TestStreamsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := embedded.Start(embedded.Config{Dir: dir, Logger: quiet()})
	require.NoError(t, err)
	require.Empty(t, s.URL(), "not listening")
	js := connect(t, s)
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	require.NoError(t, err)
	_, err = js.Publish(ctx, "s.1", make([]byte, 4<<20+1000))
	require.NoError(t, err, "a result of 4 MiB fits")
	s.Stop()

	s, err = embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:0", Logger: quiet()})
	require.NoError(t, err)
	defer s.Stop()
	stream, err := connect(t, s).Stream(ctx, "S")
	require.NoError(t, err)
	require.EqualValues(t, 1, stream.CachedInfo().State.Msgs)
	nc, err := nats.Connect(s.URL())
	require.NoError(t, err)
	nc.Close()
}

func TestDirectoryIsUsedOnce(t *testing.T) {
	dir := t.TempDir()
	s, err := embedded.Start(embedded.Config{Dir: dir, Logger: quiet()})
	require.NoError(t, err)
	defer s.Stop()
	_, err = embedded.Start(embedded.Config{Dir: dir, Logger: quiet()})
	require.ErrorIs(t, err, embedded.ErrDirInUse)
	require.ErrorContains(t, err, dir)
}

func TestBadStartsAreErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for want, cfg := range map[string]embedded.Config{
		"no store directory":     {},
		"cannot be made":         {Dir: filepath.Join(file, "below")},
		"use host:port":          {Dir: t.TempDir(), Listen: "4222"},
		"is not a number":        {Dir: t.TempDir(), Listen: "127.0.0.1:nats"},
		"address already in use": {Dir: t.TempDir(), Listen: taken.Addr().String()},
	} {
		cfg.Logger = quiet()
		_, err := embedded.Start(cfg)
		require.ErrorContains(t, err, want)
	}
}
