package e2e

import (
	"os"
	"testing"

	"github.com/callfan/callfan/internal/programtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}
