package testservers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	natsModule = "github.com/nats-io/nats-server/v2"
	// buildTimeout covers a cold build on a slow machine, and the wait for another test process that is building.
	buildTimeout = 10 * time.Minute
)

// natsBinary returns the path of nats-server in the version of go.mod. The first caller on a machine builds it into the
// user's cache directory; a file lock makes test binaries that run in parallel wait for that build.
var natsBinary = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	version, err := runGo(ctx, "list", "-m", "-f", "{{.Version}}", natsModule)
	if err != nil {
		return "", fmt.Errorf("find its version: %w", err)
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	return buildOnce(ctx, filepath.Join(dir, "nats-server-"+version), natsModule)
})

func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	return filepath.Join(cache, "callfan"), nil
}

// buildOnce builds what the arguments of go build name, unless the path is there already.
func buildOnce(ctx context.Context, path string, args ...string) (string, error) {
	if exists(path) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("make the cache directory: %w", err)
	}
	lock := flock.New(path + ".lock")
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return "", fmt.Errorf("wait for another build: %w", err)
	}
	defer lock.Unlock()
	if exists(path) {
		return path, nil
	}
	// Built beside and renamed, so that a build that is cut off leaves nothing that looks like the binary.
	partial := path + ".partial"
	defer os.Remove(partial)
	if _, err := runGo(ctx, append([]string{"build", "-o", partial}, args...)...); err != nil {
		return "", err
	}
	return path, os.Rename(partial, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func runGo(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
