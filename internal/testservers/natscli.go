package testservers

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const natsCLIModule = "github.com/nats-io/natscli"

// natsCLI returns the path of the nats command in the version of tools/nats.mod, built as nats-server is.
var natsCLI = sync.OnceValues(func() (string, error) {
	return toolBinary("nats.mod", natsCLIModule, natsCLIModule+"/nats", "natscli", "nats")
})

// NATSCLI returns the directory of the nats command, for PATH. It fails the test, too, when jq or bash is missing, which
// scripts around that command need.
func NATSCLI(t testing.TB) string {
	t.Helper()
	for _, program := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("testservers: %s is missing; remedy: install it (make deps)", program)
		}
	}
	path, err := natsCLI()
	if err != nil {
		t.Fatalf("testservers: build the nats command: %v; remedy: see that the Go module proxy can be reached", err)
	}
	return filepath.Dir(path)
}
