package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/pkg/conformance"
	"github.com/callfan/callfan/pkg/conformance/conformancetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// The Go SDK passes everything.
func TestGo(t *testing.T) {
	t.Parallel()
	conformancetest.Run(t, conformance.Executor{Command: programtest.Build(t, "examples/conformance-go")})
}

// Programs and HTTP endpoints of the generic executor pass everything.
func TestGenericExecutor(t *testing.T) {
	t.Parallel()
	programs := filepath.Dir(programtest.Build(t, "cmd/executor"))
	for _, how := range []string{"exec", "http"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			conformancetest.Run(t, conformance.Executor{
				Command: programtest.Build(t, "examples/conformance-generic") + " " + how,
				Env:     []string{"PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH")},
			})
		})
	}
}
