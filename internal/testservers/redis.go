package testservers

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisServer is a redis-server process that belongs to one test.
type RedisServer struct {
	process *process
	addr    string
	bus     int
}

// RedisOption changes how Redis starts the server.
type RedisOption func(*redisConfig)

type redisConfig struct {
	appendOnly      string
	maxMemoryPolicy string
	cluster         bool
	extra           []string
}

// RedisAppendOnly turns on the append-only file, written through on every command, so that data survives Stop and Kill.
// Without it a server that is started again is empty.
func RedisAppendOnly() RedisOption {
	return func(c *redisConfig) { c.appendOnly = "yes" }
}

// RedisMaxMemoryPolicy sets the eviction policy, "allkeys-lru" for example. Defaults to "noeviction", the only policy
// callfan accepts.
func RedisMaxMemoryPolicy(policy string) RedisOption {
	return func(c *redisConfig) { c.maxMemoryPolicy = policy }
}

// RedisArgs adds command line arguments of redis-server, "--maxmemory", "10mb" for example. They come last and win.
func RedisArgs(args ...string) RedisOption {
	return func(c *redisConfig) { c.extra = append(c.extra, args...) }
}

// RedisCluster makes the server a node of a cluster that has no others yet. Its bus has a port of its own: the default
// one, 10,000 above the node's, may be taken by anybody.
func RedisCluster() RedisOption {
	return func(c *redisConfig) { c.cluster = true }
}

// Redis starts a redis-server process and returns when it answers PING. It keeps nothing on disk unless told otherwise by
// an option. The test fails when redis-server is not installed or does not start.
func Redis(t testing.TB, opts ...RedisOption) *RedisServer {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("testservers: redis-server is not installed (%v); remedy: `apt-get install redis-server`, or `make deps` as root", err)
	}
	config := redisConfig{appendOnly: "no", maxMemoryPolicy: "noeviction"}
	for _, opt := range opts {
		opt(&config)
	}
	dir, port := t.TempDir(), reservePort(t)
	args := []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "",
		"--appendonly", config.appendOnly, "--appendfsync", "always", "--maxmemory-policy", config.maxMemoryPolicy,
	}
	server := &RedisServer{addr: loopback(port)}
	if config.cluster {
		server.bus = reservePort(t)
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(server.bus))
	}
	server.process = &process{
		t: t, name: "redis-server " + server.addr, path: path, args: append(args, config.extra...), ready: server.ping,
	}
	server.process.launch(dir)
	return server
}

// URL returns the address as a URL that Redis clients parse: "redis://127.0.0.1:PORT/0".
func (s *RedisServer) URL() string { return "redis://" + s.addr + "/0" }

// Bus returns the port of the cluster's bus; 0 without RedisCluster.
func (s *RedisServer) Bus() int { return s.bus }

// Addr returns the address as host and port.
func (s *RedisServer) Addr() string { return s.addr }

// Dir returns the data directory.
func (s *RedisServer) Dir() string { return filepath.Dir(s.process.logPath) }

// Log returns the end of the server's log, over all its runs.
func (s *RedisServer) Log() string { return s.process.log() }

// Stop ends the server in order and returns when it is gone. Stopping a stopped server does nothing.
func (s *RedisServer) Stop() { s.process.t.Helper(); s.process.stop() }

// Kill ends the server by SIGKILL and returns when it is gone. Killing a stopped server does nothing.
func (s *RedisServer) Kill() { s.process.t.Helper(); s.process.kill() }

// Start brings a stopped server back on the same port with the same data directory and returns when it is ready. Only
// the data of a server with RedisAppendOnly comes back.
func (s *RedisServer) Start() { s.process.t.Helper(); s.process.start() }

// Pause freezes the server: connections stay open, and from its return on nothing is answered until Resume.
func (s *RedisServer) Pause() { s.process.t.Helper(); s.process.signal("pause", pause) }

// Resume lets a paused server go on.
func (s *RedisServer) Resume() { s.process.t.Helper(); s.process.signal("resume", resume) }

// ping accepts a server that asks for a password as ready, and one that still loads its data as not ready.
func (s *RedisServer) ping() error {
	reply, err := ask(s.addr, "PING\r\n")
	if err != nil {
		return err
	}
	if strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-NOAUTH") {
		return nil
	}
	return fmt.Errorf("PING was answered by %q", reply)
}

// ask sends one request, if any, and returns the first line the server says.
func ask(addr, request string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}
