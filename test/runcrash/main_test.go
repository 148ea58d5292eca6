//go:build unix

package runcrash

import (
	"flag"
	"os"
	"testing"

	"github.com/callfan/callfan/internal/programtest"
)

var (
	kills = flag.Int("kills", 20, "how often a dispatcher is killed")
	seed  = flag.Uint64("seed", 0, "seed of the runs and of the kills; 0 draws one")
	logs  = flag.String("logs", "", "keep what the dispatchers log, with all details, in this directory")
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}
