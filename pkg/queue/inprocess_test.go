package queue

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestInProcessServerInMemory(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), NoLog: true,
		JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 1 << 30, MaxPayload: 8 << 20,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(patience))
	ctx := testContext(t)
	c := connect(t, Config{InProcess: s, Storage: StorageMemory, Partitions: 1})
	require.NoError(t, c.Provision(ctx))
	_, err = c.ServeRegistry(serving(t))
	require.NoError(t, err)
	puller := bind(t, c, "p", "f")
	d := dispatchOf("f", `{"a":1}`)
	d.Partition = 0
	requireNoErrors(t, c.Publish(ctx, []call.Dispatch{d}))
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { require.NoError(t, taken.Ack()) }))
}
