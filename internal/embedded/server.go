// Package embedded runs a nats-server with JetStream inside the process, for demos,
// for development on one machine, and for the conformance suite. The dispatcher and
// the executor do not link it.
package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
)

// ErrDirInUse says that another process serves the same directory. nats-server
// itself would start on it and corrupt it.
var ErrDirInUse = errors.New("the store directory is in use by another process")

const (
	// MaxPayload lets a result of 4 MiB through with its envelope.
	MaxPayload = 8 << 20
	readyWait  = 10 * time.Second
)

// Config sets the embedded server up.
type Config struct {
	// Dir keeps the streams, also over a restart. Required.
	Dir string
	// Listen is the host:port for clients in other processes; a port of 0 takes any
	// free one. Empty: only this process can connect.
	Listen string
	// MaxStore bounds the streams on disk, in bytes. Defaults to 4 GiB.
	MaxStore int64
	// Logger gets the server's warnings and errors. Defaults to slog.Default().
	Logger *slog.Logger
	// Adjust changes the server's options before it starts: users, limits. Defaults to
	// no change.
	Adjust func(*server.Options)
}

// Server is a running nats-server. It is a nats.InProcessConnProvider.
type Server struct {
	*server.Server
	lock *flock.Flock
}

// Start runs a server and waits until JetStream can be used. It fails when the
// directory is in use (ErrDirInUse) or cannot be written, or the address is taken.
func Start(cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.MaxStore == 0 {
		cfg.MaxStore = 4 << 30
	}
	opts := &server.Options{
		ServerName: "callfan-embedded", DontListen: cfg.Listen == "", NoSigs: true,
		JetStream: true, StoreDir: cfg.Dir,
		JetStreamMaxMemory: 256 << 20, JetStreamMaxStore: cfg.MaxStore,
		// One server has no replica to recover from: lose at most a second to a crash
		// of the machine. A crash of the process loses nothing.
		SyncInterval: time.Second,
		MaxPayload:   MaxPayload, MaxPending: 64 << 20,
	}
	if cfg.Listen != "" {
		host, port, err := net.SplitHostPort(cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("embedded NATS: address %q: %w; use host:port", cfg.Listen, err)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("embedded NATS: port %q is not a number", port)
		}
		// The server would only log a taken address, and wait.
		probe, err := net.Listen("tcp", cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("embedded NATS: %w", err)
		}
		_ = probe.Close()
		opts.Host, opts.Port = host, n
		if n == 0 {
			opts.Port = server.RANDOM_PORT
		}
	}
	if cfg.Adjust != nil {
		cfg.Adjust(opts)
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		_ = lock.Unlock()
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	// NewServer and Start report no failure of JetStream or of the listener: they
	// log it, and the server never becomes ready.
	log := &serverLog{log: cfg.Logger}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	if !s.ReadyForConnections(readyWait) {
		s.Shutdown()
		s.WaitForShutdown()
		_ = lock.Unlock()
		return nil, fmt.Errorf("embedded NATS did not become ready: %s", log.last())
	}
	return &Server{Server: s, lock: lock}, nil
}

// lockDir makes the directory and takes it for this process.
func lockDir(dir string) (*flock.Flock, error) {
	if dir == "" {
		return nil, errors.New("embedded NATS: no store directory is given")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded NATS: the store directory cannot be made: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "callfan.lock"))
	switch ok, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("embedded NATS: the store directory cannot be written: %w", err)
	case !ok:
		return nil, fmt.Errorf("embedded NATS: %w: %s; stop the other one or use another directory", ErrDirInUse, dir)
	}
	return lock, nil
}

// URL is the address for clients in other processes, empty without Listen.
func (s *Server) URL() string {
	if addr, ok := s.Addr().(*net.TCPAddr); ok {
		return "nats://" + addr.String()
	}
	return ""
}

// Stop ends the server and waits for it.
func (s *Server) Stop() {
	s.Shutdown()
	s.WaitForShutdown()
	_ = s.lock.Unlock()
}
