package property_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/kvstore"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// shards is how many checks of one store run side by side.
const shards = 4

// opener opens an empty store.
type opener func(t require.TestingT) results.Store

// stores start the server of each kind of store.
func stores(t *testing.T) map[string]opener {
	t.Helper()
	var number atomic.Int64
	redis := testservers.Redis(t)
	server := testservers.NATS(t)
	nc, err := nats.Connect(server.URL(), nats.MaxReconnects(-1))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return map[string]opener{
		"redis": func(t require.TestingT) results.Store {
			s, err := redisstore.New(context.Background(), redisstore.Config{
				URL: redis.URL(), Prefix: fmt.Sprint("p", number.Add(1)), Partitions: partitions,
			})
			require.NoError(t, err)
			return s
		},
		"kv": func(t require.TestingT) results.Store {
			s, err := kvstore.New(context.Background(), js, kvstore.Config{
				Bucket: fmt.Sprint("P", number.Add(1)), Partitions: partitions, Storage: jetstream.MemoryStorage,
			})
			require.NoError(t, err)
			return s
		},
	}
}

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
