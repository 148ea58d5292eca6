package programtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// built holds what this test process has built: one program a package.
var built struct {
	mu       sync.Mutex
	dir      string
	programs map[string]func() (string, error)
}

// Build builds the package at a path below the root of the module, "cmd/callfan" for example, and returns the program's
// path. Each is built once per test process, without the race detector. The package's TestMain calls Remove at its end.
func Build(t testing.TB, path string) string {
	t.Helper()
	built.mu.Lock()
	build, ok := built.programs[path]
	if !ok {
		build = sync.OnceValues(func() (string, error) { return compile(path) })
		if built.programs == nil {
			built.programs = make(map[string]func() (string, error))
		}
		built.programs[path] = build
	}
	built.mu.Unlock()
	program, err := build()
	if err != nil {
		t.Fatalf("programtest: build %s: %v", path, err)
	}
	return program
}

// Remove deletes what was built.
func Remove() {
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
		built.dir, built.programs = "", nil
	}
}

func compile(path string) (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, filepath.Base(path))
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	cmd := exec.Command("go", "build", "-o", program, "./"+path)
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return program, nil
}

func buildDir() (string, error) {
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "callfan-programs-")
		if err != nil {
			return "", err
		}
		built.dir = dir
	}
	return built.dir, nil
}

// Root returns the root of the module, which is above the directory that tests run in.
func Root() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "."
}
