package property_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// shards is how many checks of one store run side by side.
const shards = 4

func TestWhateverHappens(t *testing.T) {
	t.Parallel()
	for name, open := range stores(t) {
		for n := range shards {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				t.Parallel()
				reported := false
				rapid.Check(t, func(rt *rapid.T) {
					s := scripts().Draw(rt, "script")
					store := open(rt)
					w := newWorld(store)
					broken := w.run(s)
					require.NoError(rt, store.Close())
					if len(broken) == 0 {
						return
					}
					if !reported { // rapid forgets what it cannot repeat
						reported = true
						t.Logf("broken: %s\nscript:%s\naccount:\n%s", strings.Join(broken, "\n  "), s, w.account())
					}
					rt.Fatalf("broken: %s\nscript:%s", strings.Join(broken, "\n  "), s)
				})
			})
		}
	}
}
