package redisstore

import (
	"context"
	"testing"

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
