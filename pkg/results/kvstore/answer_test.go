package kvstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// TestStoresNameTheirOwnResults: a store that lost deletes what it wrote. Had the
// winner, with the same result, written under the same name, it would lose it.
func TestStoresNameTheirOwnResults(t *testing.T) {
	t.Parallel()
	one, two := &Store{instance: "1"}, &Store{instance: "2"}
	c := results.Completion{OutcomeID: "o", Result: call.Result{Success: true, Output: []byte("1")}}
	first, retry := one.stored(c), one.stored(c)
	require.Equal(t, first, retry, "a retry finds what the first try left")
	require.NotEqual(t, one.stored(c).name, two.stored(c).name)
	other := c
	other.Result.Output = []byte("2")
	require.NotEqual(t, one.stored(c).name, one.stored(other).name)
	other = c
	other.OutcomeID = "p"
	require.NotEqual(t, one.stored(c).name, one.stored(other).name)
}
