package functionfile

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary play the programs of the tests: a test names it as
// the command, with a role as the first argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		play(os.Args[2], os.Args[3:])
	}
	goleak.VerifyTestMain(m)
}
