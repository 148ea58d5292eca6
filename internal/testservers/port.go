package testservers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gofrs/flock"
)

// Ports are taken below the range from which Linux, macOS and Windows hand out ports by themselves, so that no outgoing
// connection and no listener on port 0 takes the port of a server that a test has stopped for a while.
const (
	firstPort = 20000
	lastPort  = 32000
)

// reservePort returns a loopback port nobody listens on. A file lock keeps it from every other test process until the
// test ends, also while the server on it is down.
func reservePort(t testing.TB) int {
	t.Helper()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("callfan-test-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("testservers: make the directory of port locks: %v", err)
	}
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		lock := flock.New(filepath.Join(dir, fmt.Sprintf("%d.lock", port)))
		locked, err := lock.TryLock()
		if err != nil || !locked {
			continue
		}
		if !portFree(port) {
			_ = lock.Unlock()
			continue
		}
		t.Cleanup(func() { _ = lock.Unlock() })
		return port
	}
	t.Fatalf("testservers: no free port between %d and %d after 200 attempts; remedy: stop leftover servers, and check that %s is writable",
		firstPort, lastPort, dir)
	return 0
}

func portFree(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
