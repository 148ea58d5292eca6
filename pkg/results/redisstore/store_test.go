package redisstore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/redisstore"
	"github.com/callfan/callfan/pkg/results/storetest"
)

func open(t testing.TB, config redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(context.Background(), config)
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	t.Run("suite", func(t *testing.T) {
		storetest.Run(t, func(t testing.TB, o storetest.Options) results.Store {
			return open(t, redisstore.Config{URL: server.URL(), Prefix: o.Namespace, Retention: o.Retention})
		})
	})
}
