//go:build unix

package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are the paths of what the run starts.
type programs struct{ nats, redis, dispatcher, executor string }

// build builds the programs into dir, with the build tag of the planted fault if there is one.
func build(ctx context.Context, dir, bug string) (programs, error) {
	p := programs{
		nats:       filepath.Join(dir, "nats-server"),
		dispatcher: filepath.Join(dir, "dispatcher"),
		executor:   filepath.Join(dir, "executor"),
	}
	var err error
	if p.redis, err = exec.LookPath("redis-server"); err != nil {
		return p, fmt.Errorf("redis-server is not installed; remedy: `make deps` as root, or install it: %w", err)
	}
	root, err := moduleRoot()
	if err != nil {
		return p, err
	}
	for _, b := range []struct{ out, pkg string }{
		{p.nats, "github.com/nats-io/nats-server/v2"},
		{p.dispatcher, "./cmd/dispatcher"},
		{p.executor, "./test/chaos/executor"},
	} {
		args := []string{"build", "-o", b.out}
		if bug != "" {
			args = append(args, "-tags", Bugs[bug].Tag)
		}
		cmd := exec.CommandContext(ctx, "go", append(args, b.pkg)...) //nolint:gosec // fixed packages
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return p, fmt.Errorf("build %s: %w: %s", b.pkg, err, strings.TrimSpace(string(out)))
		}
	}
	return p, nil
}

// moduleRoot is the directory of go.mod above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("no go.mod above the working directory; run it inside the repository")
		}
		dir = filepath.Dir(dir)
	}
}
