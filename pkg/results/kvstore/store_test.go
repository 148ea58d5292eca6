package kvstore_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/kvstore"
	"github.com/callfan/callfan/pkg/results/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func open(t testing.TB, js jetstream.JetStream, config kvstore.Config) *kvstore.Store {
	t.Helper()
	s, err := kvstore.New(context.Background(), js, config)
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	t.Run("suite", func(t *testing.T) {
		storetest.Run(t, func(t testing.TB, o storetest.Options) results.Store {
			return open(t, connect(t, server.URL()), kvstore.Config{Bucket: o.Namespace, Retention: o.Retention})
		})
	})
}
