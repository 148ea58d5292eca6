package property_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/callfan/callfan/pkg/results/redisstore"
)

// TestMain sets how much is run by default: a script takes seconds of real time, most of
// them spent waiting, so many run side by side whatever the number of processors.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{
		"rapid.checks": "5", "rapid.nofailfile": "true", "rapid.shrinktime": "60s", "test.parallel": "8",
	} {
		if !given(name) {
			if err := flag.Set(name, value); err != nil {
				panic(err)
			}
		}
	}
	redisstore.SilenceClient()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func given(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}
