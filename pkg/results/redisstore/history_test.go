package redisstore

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// TestEntriesWithoutHistory holds that calls which an earlier version recorded are
// read and continued, with the steps from then on.
func TestEntriesWithoutHistory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, err := New(ctx, Config{URL: testservers.Redis(t).URL()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	claimed := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	at := strconv.FormatInt(claimed.UnixMilli(), 10)
	require.NoError(t, s.client.HSet(ctx, s.keys.turn("sess", "turn"),
		"f", "1", "n", "2", ":open", "q1.1."+at+".20.1.f", ":saved", "S1.1."+at+".20.1.fo1").Err())
	require.NoError(t, s.client.HSet(ctx, s.keys.bodies("sess", "turn"), "saved", "{}").Err())
	key := func(id string) call.Key { return call.Key{Session: "sess", Turn: "turn", Call: id} }

	saved, err := s.Complete(ctx, []uint64{1}, []results.Completion{{Key: key("saved"), OutcomeID: "o1", Note: "again"}})
	require.NoError(t, err)
	require.Equal(t, results.Saved, saved[0].Verdict, "a replay")
	moved, err := s.Move(ctx, 1, []results.Move{
		{Key: key("saved"), To: call.Settled},
		{Key: key("open"), To: call.Queued, Note: "e1 has it"},
		{Key: key("open"), To: call.Queued, Note: "e1 has it"},
		{Key: key("open"), To: call.Retrying},
	})
	require.NoError(t, err)
	require.True(t, moved[3].Done)

	records, err := s.Get(ctx, []call.Key{key("open"), key("saved")})
	require.NoError(t, err)
	require.Equal(t, claimed, records[0].ClaimedAt)
	require.Len(t, records[0].History, 2)
	require.Equal(t, "e1 has it", records[0].History[0].Note)
	require.Equal(t, call.Retrying, records[0].History[1].State)
	require.GreaterOrEqual(t, records[0].History[0].At.Sub(claimed), time.Hour)
	require.Equal(t, "o1", records[1].OutcomeID)
	require.Len(t, records[1].History, 1)
}
