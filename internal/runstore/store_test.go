package runstore_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/runstore"
	"github.com/callfan/callfan/internal/testservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, options ...testservers.NATSOption) *runstore.Store {
	t.Helper()
	server := testservers.NATS(t, options...)
	nc, err := nats.Connect(server.URL(), nats.MaxReconnects(-1))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for range 2 { // the second time it is there
		_, err = runstore.Open(t.Context(), nc, js, runstore.Config{})
		require.NoError(t, err)
	}
	s, err := runstore.Open(t.Context(), nc, js, runstore.Config{})
	require.NoError(t, err)
	return s
}

func TestHowLongRunsAreKeptCanBeChanged(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect(testservers.NATS(t).URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for _, keep := range []time.Duration{7 * 24 * time.Hour, 100 * time.Hour, 30 * 24 * time.Hour} {
		_, err := runstore.Open(t.Context(), nc, js, runstore.Config{Keep: keep})
		require.NoError(t, err)
		kv, err := js.KeyValue(t.Context(), "FN_RUNS")
		require.NoError(t, err)
		status, err := kv.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, keep, status.TTL())
	}
}

func TestRunsAreChangedByCompareAndSet(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	run := runs.Run{ID: "run_1", Status: runs.Queued, Created: time.Now().UTC().Truncate(time.Millisecond)}
	request := json.RawMessage(`{"model":"m", "n":9007199254740993}`)
	require.NoError(t, s.Create(ctx, run, request))
	require.NoError(t, s.Create(ctx, run, request), "its answer may have been lost")
	other := run
	other.Model = "other"
	require.ErrorIs(t, s.Create(ctx, other, request), runs.ErrExists)
	require.ErrorIs(t, s.Create(ctx, run, json.RawMessage(`{}`)), runs.ErrExists)
	got, err := s.Request(ctx, "run_1")
	require.NoError(t, err)
	require.Equal(t, string(request), string(got))

	loaded, revision, err := s.Load(ctx, "run_1")
	require.NoError(t, err)
	require.Equal(t, run, loaded)
	run.Status = runs.InProgress
	next, err := s.Save(ctx, run, revision)
	require.NoError(t, err)
	again, err := s.Save(ctx, run, revision)
	require.NoError(t, err, "the same content is the same save")
	require.Equal(t, next, again)
	other.Status = runs.Failed
	_, err = s.Save(ctx, other, revision)
	require.ErrorIs(t, err, runs.ErrStale)

	_, _, err = s.Load(ctx, "run_2")
	require.ErrorIs(t, err, runs.ErrNotFound)
	_, _, err = s.Load(ctx, "a.b>")
	require.ErrorIs(t, err, runs.ErrNotFound)
}

func TestAnOutputIsNeverReplaced(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	ref := runs.Ref{Round: 2, Index: 3}
	_, err := s.Output(ctx, "run_1", ref)
	require.ErrorIs(t, err, runs.ErrNotFound)
	for _, item := range []string{`{"output":"first"}`, `{"output":"second"}`} {
		stored, err := s.PutOutput(ctx, "run_1", runs.Output{Ref: ref, Item: json.RawMessage(item)})
		require.NoError(t, err)
		require.JSONEq(t, `{"output":"first"}`, string(stored))
	}
	for range 2 {
		tools, err := s.PutTools(ctx, "run_1", json.RawMessage(`[]`))
		require.NoError(t, err)
		require.Equal(t, `[]`, string(tools))
	}
	require.NoError(t, s.PutItem(ctx, "run_1", ref, json.RawMessage(`{"n": 1}`)))
	item, err := s.Item(ctx, "run_1", ref)
	require.NoError(t, err)
	require.Equal(t, `{"n": 1}`, string(item))
	require.NoError(t, s.Remember(ctx, "resp_ü.>", "run_1"))
	id, err := s.RunOf(ctx, "resp_ü.>")
	require.NoError(t, err)
	require.Equal(t, "run_1", id)
}

func TestEntriesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, testservers.NATSMaxPayload(128<<10))
	large := json.RawMessage(`"` + strings.Repeat("x", 200<<10) + `"`)
	require.ErrorIs(t, s.PutItem(t.Context(), "run_1", runs.Ref{}, large), runs.ErrTooLarge)
	_, err := s.PutOutput(t.Context(), "run_1", runs.Output{Item: large})
	require.ErrorIs(t, err, runs.ErrTooLarge)
}

func TestTheActiveRunsAreFollowed(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, s.Create(ctx, runs.Run{ID: "run_1"}, json.RawMessage(`{}`)))
	require.NoError(t, s.Create(ctx, runs.Run{ID: "run_2"}, json.RawMessage(`{}`)))
	require.NoError(t, s.Retire(ctx, "run_2"))
	seen := make(chan string, 10)
	done := make(chan error, 1)
	go func() { done <- s.Active(ctx, func(id string) { seen <- id }) }()
	require.Equal(t, "run_1", <-seen)
	cancelled, err := s.Cancelled(ctx, "run_1")
	require.NoError(t, err)
	require.False(t, cancelled)
	require.NoError(t, s.Cancel(ctx, "run_1"))
	require.NoError(t, s.Cancel(ctx, "run_1"))
	require.Equal(t, "run_1", <-seen)
	cancelled, err = s.Cancelled(ctx, "run_1")
	require.NoError(t, err)
	require.True(t, cancelled)
	cancel()
	require.NoError(t, <-done)
}

func TestNoticesCanBeReadAgain(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	for _, delta := range []string{"a", "b", "c"} {
		s.Tell(runs.Notice{Type: "run.text.delta", Run: "run_1", Delta: delta})
		s.Tell(runs.Notice{Type: "run.text.delta", Run: "run_2", Delta: delta})
	}
	read := func(after uint64, count int) (text string, last uint64) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		require.NoError(t, s.Follow(ctx, "run_1", after, func(number uint64, notice json.RawMessage) bool {
			var n runs.Notice
			require.NoError(t, json.Unmarshal(notice, &n))
			text, last = text+n.Delta, number
			return len(text) < count
		}))
		return text, last
	}
	text, _ := read(0, 3)
	require.Equal(t, "abc", text)
	_, first := read(0, 1)
	text, _ = read(first, 2)
	require.Equal(t, "bc", text)
}
