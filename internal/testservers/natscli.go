package testservers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const natsCLIModule = "github.com/nats-io/natscli"

// natsCLI returns the path of the nats command in the version of tools/nats.mod, built as nats-server is.
var natsCLI = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	module, err := runGo(ctx, "env", "GOMOD")
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	modfile := "-modfile=" + filepath.Join(filepath.Dir(module), "tools", "nats.mod")
	version, err := runGo(ctx, "list", modfile, "-m", "-f", "{{.Version}}", natsCLIModule)
	if err != nil {
		return "", fmt.Errorf("find its version: %w", err)
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	// The directory has the version, since scripts call the command by its name.
	return buildOnce(ctx, filepath.Join(dir, "natscli-"+version, "nats"), modfile, natsCLIModule+"/nats")
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
