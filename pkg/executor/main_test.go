package executor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// PlayExecutor is what the test binary does in place of tests when it is started as
// an executor process.
var PlayExecutor func(url, ledger, stand string) error

func TestMain(m *testing.M) {
	if role := strings.Fields(os.Getenv("EXECUTOR_PLAY")); len(role) == 3 {
		fmt.Fprintln(os.Stderr, PlayExecutor(role[0], role[1], role[2]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
