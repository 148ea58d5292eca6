package property_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/kvstore"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// opened is a store that can lose everything.
type opened struct {
	results.Store
	lose func(context.Context) error
}

// opener opens an empty store.
type opener func(t require.TestingT) opened

// stores start the server of each kind of store.
func stores(t *testing.T) map[string]opener {
	t.Helper()
	var number atomic.Int64
	return map[string]opener{"redis": onRedis(t, &number), "kv": onKV(t, &number)}
}

func onRedis(t *testing.T, number *atomic.Int64) opener {
	t.Helper()
	server := testservers.Redis(t)
	options, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return func(t require.TestingT) opened {
		prefix := fmt.Sprintf("p%d_", number.Add(1))
		s, err := redisstore.New(context.Background(), redisstore.Config{URL: server.URL(), Prefix: prefix, Partitions: partitions})
		require.NoError(t, err)
		return opened{s, func(ctx context.Context) error {
			keys, err := client.Keys(ctx, prefix+"*").Result() // a FLUSHALL would hit the other scripts, too
			if err != nil || len(keys) == 0 {
				return err
			}
			return client.Del(ctx, keys...).Err()
		}}
	}
}

func onKV(t *testing.T, number *atomic.Int64) opener {
	t.Helper()
	nc, err := nats.Connect(testservers.NATS(t).URL(), nats.MaxReconnects(-1))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return func(t require.TestingT) opened {
		bucket := fmt.Sprint("P", number.Add(1))
		s, err := kvstore.New(context.Background(), js, kvstore.Config{Bucket: bucket, Partitions: partitions, Storage: jetstream.MemoryStorage})
		require.NoError(t, err)
		return opened{s, func(ctx context.Context) error {
			stream, err := js.Stream(ctx, "KV_"+bucket)
			if err != nil {
				return err
			}
			return stream.Purge(ctx)
		}}
	}
}
