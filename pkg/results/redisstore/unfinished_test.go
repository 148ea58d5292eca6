package redisstore

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// TestUnfinishedWithOddPrefixes holds that a prefix with the characters of
// patterns finds its own sessions and no others.
func TestUnfinishedWithOddPrefixes(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	ctx := context.Background()
	prefixes := []string{"fx", "f*", "f?", "[a-z]x", `f\*`, "f[^a]", "{fx}", "fx:{a}:t"}
	stores := make([]*Store, len(prefixes))
	for i, prefix := range prefixes {
		s, err := New(ctx, Config{URL: server.URL(), Prefix: prefix})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		_, err = s.Claim(ctx, 1, []results.Claim{{
			Key: call.Key{Session: prefix, Turn: ":t:}", Call: "c"}, Function: "f", State: call.Seen,
		}})
		require.NoError(t, err)
		stores[i] = s
	}
	for i, s := range stores {
		var sessions []string
		require.NoError(t, s.Unfinished(ctx, func(session string) error {
			sessions = append(sessions, session)
			return nil
		}))
		require.Equal(t, []string{prefixes[i]}, sessions)
	}
}

// TestUnfinishedOnEveryMaster holds that the sessions of all masters of a cluster
// are found.
func TestUnfinishedOnEveryMaster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var nodes []*redis.Client
	var addrs []string
	var bus int // of the last
	for range 2 {
		server := testservers.Redis(t, testservers.RedisCluster())
		node := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = node.Close() })
		nodes, addrs, bus = append(nodes, node), append(addrs, server.Addr()), server.Bus()
	}
	require.NoError(t, nodes[0].ClusterAddSlotsRange(ctx, 0, 8191).Err())
	require.NoError(t, nodes[1].ClusterAddSlotsRange(ctx, 8192, 16383).Err())
	// Two nodes that begin with the same epoch would first have to settle whose is newer.
	require.NoError(t, nodes[1].Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", 2).Err())
	host, port, err := net.SplitHostPort(addrs[1])
	require.NoError(t, err)
	require.NoError(t, nodes[0].Do(ctx, "CLUSTER", "MEET", host, port, bus).Err())
	for _, node := range nodes {
		require.Eventually(t, func() bool {
			info, err := node.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_size:2")
		}, 30*time.Second, 50*time.Millisecond)
	}
	s, err := New(ctx, Config{Universal: &redis.UniversalOptions{Addrs: addrs, IsClusterMode: true}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	var want []string
	for i := range 200 {
		session := fmt.Sprintf("sess_%d", i)
		want = append(want, session)
		_, err := s.Claim(ctx, 1, []results.Claim{{
			Key: call.Key{Session: session, Turn: "turn", Call: "c"}, Function: "f", State: call.Seen,
		}})
		require.NoError(t, err)
	}
	for _, node := range nodes {
		require.NotZero(t, node.DBSize(ctx).Val(), "all keys are on one master")
	}
	var sessions []string
	require.NoError(t, s.Unfinished(ctx, func(session string) error {
		sessions = append(sessions, session)
		return nil
	}))
	require.ElementsMatch(t, want, sessions)
}
