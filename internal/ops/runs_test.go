package ops_test

import (
	"bufio"
	"context"
	encoding "encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/ops/opsclient"
	"github.com/callfan/callfan/internal/runs"
)

// ran stands for the engine.
type ran struct {
	run     runs.Run
	runErr  error
	request string
	key     string
	notices []runs.Notice
	// cut ends the first stream after as many notices.
	cut int
}

func (r *ran) StartRun(_ context.Context, request encoding.RawMessage, key string) (runs.Run, error) {
	r.request, r.key = string(request), key
	return r.run, r.runErr
}

func (r *ran) ShowRun(context.Context, string) (runs.Run, error)   { return r.run, r.runErr }
func (r *ran) CancelRun(context.Context, string) (runs.Run, error) { return r.run, r.runErr }

func (r *ran) FollowRun(_ context.Context, _ string, after uint64, each func(uint64, encoding.RawMessage) bool) error {
	for i, n := range r.notices {
		if uint64(i) < after {
			continue
		}
		if r.cut > 0 && i == r.cut {
			r.cut = 0
			return nil
		}
		body, err := encoding.Marshal(n)
		if err != nil {
			return err
		}
		if !each(uint64(i+1), body) {
			return nil
		}
	}
	return nil
}

func TestRunsOverTheAdminAPI(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	b.admin.run = runs.Run{ID: "run_1", Status: runs.Queued, Created: time.Unix(1, 0).UTC(), Rounds: []runs.Round{}}
	request := `{"model": "m", "input": "<北京>", "n": 9007199254740993}`
	status, body := b.do(t, http.MethodPost, "/v1/runs", request, "Content-Type", "application/json", "Idempotency-Key", "k")
	require.Equal(t, http.StatusCreated, status, body)
	require.Equal(t, request, b.admin.request, "the very bytes")
	require.Equal(t, "k", b.admin.key)
	c := b.client(t, "")
	got, err := c.Run(t.Context(), "run_1")
	require.NoError(t, err)
	require.Equal(t, b.admin.run, got)
	_, err = c.CancelRun(t.Context(), "run_1")
	require.NoError(t, err)

	status, _ = b.do(t, http.MethodPost, "/v1/runs", request)
	require.Equal(t, http.StatusUnsupportedMediaType, status)
	status, _ = b.do(t, http.MethodPost, "/v1/runs", request, "Content-Type", "application/json", "Idempotency-Key", strings.Repeat("k", 300))
	require.Equal(t, http.StatusBadRequest, status)
	for err, want := range map[error]int{
		runs.ErrInvalidRequest: http.StatusBadRequest, runs.ErrConflict: http.StatusConflict, runs.ErrNotFound: http.StatusNotFound,
		runs.ErrTooLarge: http.StatusRequestEntityTooLarge, ops.ErrNotStarted: http.StatusServiceUnavailable,
		errMissing: http.StatusServiceUnavailable,
	} {
		b.admin.runErr = err
		_, failed := c.StartRun(t.Context(), encoding.RawMessage(request))
		var answer *opsclient.Error
		require.ErrorAs(t, failed, &answer)
		require.Equal(t, want, answer.Status)
	}
}

func TestARunIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]int{"in one go": 0, "over a cut stream": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, ops.Config{})
			b.admin.run = runs.Run{ID: "run_1", Status: runs.InProgress}
			b.admin.notices = []runs.Notice{
				{Type: runs.NoticeRound, Round: 1},
				{Type: runs.NoticeCall, Function: "f"},
				{Type: runs.NoticeText, Delta: "a\nb"},
				{Type: runs.NoticeEnded, Status: runs.Completed},
			}
			b.admin.cut = cut
			var seen []runs.Notice
			require.NoError(t, b.client(t, "").FollowRun(t.Context(), "run_1", func(n runs.Notice) { seen = append(seen, n) }))
			require.Equal(t, b.admin.notices, seen)
		})
	}
}

func TestTheEndIsToldAlsoWithoutNotices(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	b.admin.run = runs.Run{ID: "run_1", Status: runs.Failed, Reason: "server_error"}
	var last runs.Notice
	require.NoError(t, b.client(t, "").FollowRun(t.Context(), "run_1", func(n runs.Notice) { last = n }))
	require.Equal(t, "server_error", last.Reason)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.Addr()+"/v1/runs/run_1/events", nil)
	require.NoError(t, err)
	res, err := b.http.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	lines := bufio.NewScanner(res.Body)
	require.True(t, lines.Scan())
	require.Equal(t, "event: run.ended", lines.Text())
	status, _ := b.do(t, http.MethodGet, "/v1/runs/run_1/events", "", "Last-Event-ID", "x")
	require.Equal(t, http.StatusBadRequest, status)
}
