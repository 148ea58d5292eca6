package testservers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// DefaultNATSMaxPayload is the largest message, in bytes, that a server of NATS accepts unless NATSMaxPayload says
// otherwise: 8 MiB, the largest size nats-server recommends.
const DefaultNATSMaxPayload = 8 << 20

// NATSServer is a nats-server process with JetStream that belongs to one test.
type NATSServer struct {
	process *process
	addr    string
	monitor string
	dir     string
}

// NATSOption changes how NATS starts the server.
type NATSOption func(*natsConfig)

type natsConfig struct {
	maxPayload int
	monitoring bool
	extra      []string
}

// NATSMaxPayload sets the largest message in bytes. Defaults to DefaultNATSMaxPayload.
func NATSMaxPayload(bytes int) NATSOption {
	return func(c *natsConfig) { c.maxPayload = bytes }
}

// NATSMonitoring opens the HTTP monitoring port; see NATSServer.MonitorURL.
func NATSMonitoring() NATSOption {
	return func(c *natsConfig) { c.monitoring = true }
}

// NATSConfig adds text to the server's configuration file: users, permissions, accounts. It comes last, so a key it
// repeats wins.
func NATSConfig(text string) NATSOption {
	return func(c *natsConfig) { c.extra = append(c.extra, text) }
}

// NATS starts a nats-server process of the version in go.mod, with JetStream and its own store directory, and returns
// when it greets clients. The binary is built once per machine; the test fails when that, or the start, does not work.
func NATS(t testing.TB, opts ...NATSOption) *NATSServer {
	t.Helper()
	binary, err := natsBinary()
	if err != nil {
		t.Fatalf("testservers: build nats-server: %v; remedy: check that `go build github.com/nats-io/nats-server/v2` works in this module", err)
	}
	config := natsConfig{maxPayload: DefaultNATSMaxPayload}
	for _, opt := range opts {
		opt(&config)
	}
	server := &NATSServer{addr: loopback(reservePort(t)), dir: t.TempDir()}
	if config.monitoring {
		server.monitor = loopback(reservePort(t))
	}
	configPath := filepath.Join(server.dir, "nats.conf")
	if err := os.WriteFile(configPath, []byte(server.configText(config)), 0o600); err != nil {
		t.Fatalf("testservers: write the nats-server configuration: %v", err)
	}
	server.process = &process{
		t: t, name: "nats-server " + server.addr, path: binary, args: []string{"--config", configPath}, ready: server.greeted,
	}
	server.process.launch(server.dir)
	return server
}

func (s *NATSServer) configText(config natsConfig) string {
	var text strings.Builder
	fmt.Fprintf(&text, "server_name: %q\n", s.name())
	fmt.Fprintf(&text, "listen: %q\n", s.addr)
	if s.monitor != "" {
		fmt.Fprintf(&text, "http: %q\n", s.monitor)
	}
	fmt.Fprintf(&text, "max_payload: %d\n", config.maxPayload)
	fmt.Fprintf(&text, "jetstream { store_dir: %q }\n", filepath.Join(s.dir, "store"))
	for _, extra := range config.extra {
		text.WriteString(extra + "\n")
	}
	return text.String()
}

func (s *NATSServer) name() string { return "test-" + strings.ReplaceAll(s.addr, ":", "-") }

// URL returns the address for clients: "nats://127.0.0.1:PORT".
func (s *NATSServer) URL() string { return "nats://" + s.addr }

// Addr returns the address for clients as host and port.
func (s *NATSServer) Addr() string { return s.addr }

// MonitorURL returns the base URL of the monitoring port, "http://127.0.0.1:PORT", or "" without NATSMonitoring.
func (s *NATSServer) MonitorURL() string {
	if s.monitor == "" {
		return ""
	}
	return "http://" + s.monitor
}

// Dir returns the directory of the configuration file and of the JetStream store.
func (s *NATSServer) Dir() string { return s.dir }

// Log returns the end of the server's log, over all its runs.
func (s *NATSServer) Log() string { return s.process.log() }

// Stop ends the server in order and returns when it is gone. Stopping a stopped server does nothing.
func (s *NATSServer) Stop() { s.process.t.Helper(); s.process.stop() }

// Kill ends the server by SIGKILL and returns when it is gone. Killing a stopped server does nothing.
func (s *NATSServer) Kill() { s.process.t.Helper(); s.process.kill() }

// Start brings a stopped server back on the same ports with the same store and returns when it is ready. Streams and
// consumers in files come back; those in memory do not.
func (s *NATSServer) Start() { s.process.t.Helper(); s.process.start() }

// Pause freezes the server: connections stay open, and from its return on nothing is answered until Resume.
func (s *NATSServer) Pause() { s.process.t.Helper(); s.process.signal("pause", pause) }

// Resume lets a paused server go on.
func (s *NATSServer) Resume() { s.process.t.Helper(); s.process.signal("resume", resume) }

// greeted reads the INFO line that the server sends first. The port opens only after JetStream is up.
func (s *NATSServer) greeted() error {
	greeting, err := ask(s.addr, "")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(greeting, "INFO ") {
		return fmt.Errorf("the server greeted with %q", greeting)
	}
	return nil
}
