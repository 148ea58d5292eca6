package queue

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// A server that has no leader yet says so in two types of errors: a start must outlast both.
func TestAnUnavailableServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	require.True(t, transient(fmt.Errorf("load: %w", &jetstream.APIError{Code: 503, ErrorCode: 10008})))
	require.True(t, transient(fmt.Errorf("load: %w", &nats.APIError{Code: 503, ErrorCode: 10008})))
	require.False(t, transient(&jetstream.APIError{Code: 404, ErrorCode: 10059}))
	require.False(t, transient(&nats.APIError{Code: 404, ErrorCode: 10059}))
	require.False(t, transient(&jetstream.APIError{Code: 503, ErrorCode: 10023}), "it is full")
}
