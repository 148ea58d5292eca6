package conformance_test

import (
	"os"
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
	conformancetest.Run(t, conformance.Executor{Command: programtest.Build(t, "examples/conformance-go")})
}
