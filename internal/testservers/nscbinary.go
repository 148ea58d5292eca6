package testservers

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
)

const nscModule = "github.com/nats-io/nsc/v2"

// nsc returns the path of nsc in the version of tools/nsc.mod, built as nats-server is.
var nsc = sync.OnceValues(func() (string, error) {
	return toolBinary("nsc.mod", nscModule, nscModule, "nsc", "nsc")
})

// NSC returns the directory of nsc, for PATH: the command by which operators of NATS make accounts and users as JWTs.
func NSC(t testing.TB) string {
	t.Helper()
	path, err := nsc()
	if err != nil {
		t.Fatalf("testservers: build nsc: %v; remedy: see that the Go module proxy can be reached", err)
	}
	return filepath.Dir(path)
}

// toolBinary builds a program of a module file below tools/. The directory has the version, since scripts call the program
// by its name.
func toolBinary(modfile, module, program, label, name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	root, err := runGo(ctx, "env", "GOMOD")
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	tools := filepath.Join(filepath.Dir(root), "tools")
	if !exists(filepath.Join(tools, modfile)) { // the tests of a module inside this one
		tools = filepath.Join(filepath.Dir(filepath.Dir(root)), "tools")
	}
	modfile = "-modfile=" + filepath.Join(tools, modfile)
	version, err := runGo(ctx, "list", modfile, "-m", "-f", "{{.Version}}", module)
	if err != nil {
		return "", fmt.Errorf("find its version: %w", err)
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	return buildOnce(ctx, filepath.Join(dir, label+"-"+version, name), modfile, program)
}
