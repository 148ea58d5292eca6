package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/redisstore"
	"github.com/callfan/callfan/pkg/results/storetest"
)

// TestConformanceOnCluster runs the suite on a cluster of one: it has all slots,
// and still refuses a script whose keys are in different ones.
func TestConformanceOnCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testservers.Redis(t, testservers.RedisCluster())
	node := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer node.Close()
	require.NoError(t, node.ClusterAddSlotsRange(ctx, 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, err := node.ClusterInfo(ctx).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, 20*time.Second, 20*time.Millisecond)
	t.Run("suite", func(t *testing.T) {
		storetest.Run(t, func(t testing.TB, o storetest.Options) results.Store {
			return open(t, redisstore.Config{
				Universal: &redis.UniversalOptions{Addrs: []string{server.Addr()}, IsClusterMode: true},
				Prefix:    o.Namespace, Retention: o.Retention,
			})
		})
	})
}
