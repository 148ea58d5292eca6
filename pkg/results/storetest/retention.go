package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// shortRetention is the retention in these tests. Stores may forget late, by a
// second or so, and never early.
const shortRetention = 2 * time.Second

func testRetention(t *testing.T, b backend) {
	short := func(t *testing.T) results.Store {
		t.Parallel()
		return b.with(t, Options{Namespace: namespace(), Retention: shortRetention})
	}
	forgotten := func(t *testing.T, s results.Store) {
		t.Helper()
		require.Eventually(t, func() bool {
			return get(t, s, key("call_1")).State == call.Absent
		}, patience, 50*time.Millisecond)
	}
	t.Run("an ended turn is kept, then forgotten", func(t *testing.T) {
		s := short(t)
		claim(t, s, 1, "call_1", "call_2")
		save(t, s, 1, "call_1", "o1", `"x"`)
		enter(t, s, 1, "call_1", call.Settled)
		ended := time.Now()
		enter(t, s, 1, "call_2", call.Cancelled)
		require.Equal(t, call.Settled, get(t, s, key("call_1")).State)
		forgotten(t, s)
		require.GreaterOrEqual(t, time.Since(ended), shortRetention-100*time.Millisecond)
		require.Eventually(t, func() bool {
			all, err := s.Session(deadline(t), session)
			return err == nil && len(all) == 0
		}, patience, 50*time.Millisecond)
		claim(t, s, 1, "call_1") // a new life
	})
	t.Run("a turn with an unfinished call is kept", func(t *testing.T) {
		s := short(t)
		claim(t, s, 1, "call_1", "call_2", "call_3")
		save(t, s, 1, "call_2", "o2", `"x"`)
		enter(t, s, 1, "call_1", call.Cancelled)
		enter(t, s, 1, "call_3", call.Cancelled)
		start := time.Now()
		require.Eventually(t, func() bool { return time.Since(start) > 2*shortRetention }, patience, 100*time.Millisecond)
		require.Equal(t, call.Cancelled, get(t, s, key("call_1")).State)
		require.Equal(t, success(`"x"`), *get(t, s, key("call_2")).Result)
	})
	t.Run("a new call lets an ended turn live on", func(t *testing.T) {
		s := short(t)
		claim(t, s, 1, "call_1")
		enter(t, s, 1, "call_1", call.Cancelled)
		claim(t, s, 1, "call_2")
		start := time.Now()
		require.Eventually(t, func() bool { return time.Since(start) > 2*shortRetention }, patience, 100*time.Millisecond)
		require.Equal(t, call.Cancelled, get(t, s, key("call_1")).State)
		enter(t, s, 1, "call_2", call.Cancelled)
		forgotten(t, s)
	})
	t.Run("calls that are still listed are not forgotten", func(t *testing.T) {
		s := short(t)
		claim(t, s, 1, "call_1")
		enter(t, s, 1, "call_1", call.Cancelled)
		start := time.Now()
		require.Eventually(t, func() bool {
			require.Equal(t, call.Cancelled, claim(t, s, 1, "call_1")[0].State)
			return time.Since(start) > 2*shortRetention
		}, patience, 50*time.Millisecond)
		forgotten(t, s)
	})
}
