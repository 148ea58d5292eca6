package queue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnAddressThatIsNotOfNATSIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://127.0.0.1:4222", "nats://127.0.0.1:4222, https://me:secret@127.0.0.1:4222", "redis://x", "://x"} {
		c, err := Connect(context.Background(), Config{URL: url})
		require.Nil(t, c)
		require.ErrorContains(t, err, "use nats://, tls://, ws:// or wss://", url)
		require.NotContains(t, err.Error(), "secret")
	}
	for _, url := range []string{
		"", "127.0.0.1", "127.0.0.1:4222", "nats://a:1,tls://b,ws://c:80, wss://d", "NATS://a", "nats://user:p@ss@a:1",
	} {
		require.NoError(t, Config{URL: url}.WithDefaults().validate(), url)
	}
}
