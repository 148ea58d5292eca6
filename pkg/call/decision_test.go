package call

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyADecisionsNonceDecides(t *testing.T) {
	t.Parallel()
	n := NewNonces([]byte("0123456789abcdef"))
	key := Key{Session: "s", Turn: "t", Call: "c"}

	nonce := n.Decision(key, "f", 3)
	attempt, ok := n.CheckDecision(key, "f", nonce)
	require.True(t, ok)
	require.Equal(t, 3, attempt)
	_, ok = n.CheckDecision(key, "g", nonce)
	require.False(t, ok, "another function")

	_, ok = n.Check(key, "f", nonce)
	require.False(t, ok, "a decision is no outcome of an attempt")
	_, ok = n.CheckDecision(key, "f", n.For(key, "f", 3))
	require.False(t, ok, "an executor's nonce does not decide")
	_, ok = n.CheckDecision(key, "f", "d"+n.For(key, "f", 3))
	require.False(t, ok, "nor does one that was dressed up")
}
