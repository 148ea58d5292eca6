package ops_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/ops/opsclient"
)

// deadLetters stands for those of an installation; letter 1 can be replayed.
type deadLetters struct {
	letters           []ops.DeadLetter
	asked             string
	dropped, replayed []uint64
	broken            error
}

func (d *deadLetters) DeadLetters(_ context.Context, function string, limit int) ([]ops.DeadLetter, error) {
	d.asked = fmt.Sprintf("%s %d", function, limit)
	return d.letters, d.broken
}

func (d *deadLetters) DeadLetter(_ context.Context, sequence uint64) (ops.DeadLetter, error) {
	for _, l := range d.letters {
		if l.Sequence == sequence {
			return l, d.broken
		}
	}
	return ops.DeadLetter{}, fmt.Errorf("%w: %d", ops.ErrNoDeadLetter, sequence)
}

func (d *deadLetters) DropDeadLetter(ctx context.Context, sequence uint64) error {
	d.dropped = append(d.dropped, sequence)
	_, err := d.DeadLetter(ctx, sequence)
	return err
}

func (d *deadLetters) ReplayDeadLetter(_ context.Context, sequence uint64) error {
	if sequence != 1 {
		return fmt.Errorf("%w: it was a call; ask again", ops.ErrNoReplay)
	}
	d.replayed = append(d.replayed, sequence)
	return nil
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	c := b.client(t, "")
	list, err := c.DeadLetters(t.Context(), "", 0)
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, " 50", b.admin.asked)
	_, body := b.do(t, http.MethodGet, "/v1/dead", "")
	require.JSONEq(t, `{"dead_letters":[]}`, body)

	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	text := ops.DeadLetter{Sequence: 1, Buried: at, Function: "f", Reason: "invalid_outcome", Subject: "fn.result.f.p00", Size: 3}
	text.SetBody([]byte(`"é"`))
	bytes := ops.DeadLetter{Sequence: 2, Buried: at, Reason: "orphan", Size: 9, Truncated: true}
	bytes.SetBody([]byte("\x00\xff"))
	b.admin.letters = []ops.DeadLetter{bytes, text}
	list, err = c.DeadLetters(t.Context(), "my function", 7)
	require.NoError(t, err)
	require.Equal(t, b.admin.letters, list)
	require.Equal(t, "my function 7", b.admin.asked)
	shown, err := c.DeadLetter(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, `"é"`, string(shown.Bytes()))
	shown, err = c.DeadLetter(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, "\x00\xff", string(shown.Bytes()))

	require.NoError(t, c.DropDeadLetter(t.Context(), 2))
	require.NoError(t, c.ReplayDeadLetter(t.Context(), 1))
	require.Equal(t, []uint64{2}, b.admin.dropped)
	require.Equal(t, []uint64{1}, b.admin.replayed)

	var refused *opsclient.Error
	require.ErrorAs(t, c.ReplayDeadLetter(t.Context(), 2), &refused)
	require.Equal(t, 409, refused.Status)
	require.Equal(t, "no_replay", refused.Code)
	require.ErrorContains(t, refused, "it was a call; ask again")
	_, err = c.DeadLetter(t.Context(), 9)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 404, refused.Status)
	require.ErrorAs(t, c.DropDeadLetter(t.Context(), 9), &refused)
	require.Equal(t, 404, refused.Status)

	for _, path := range []string{"/v1/dead?limit=0", "/v1/dead?limit=1001", "/v1/dead?limit=x", "/v1/dead/0", "/v1/dead/x", "/v1/dead/-1"} {
		status, body := b.do(t, http.MethodGet, path, "")
		require.Equal(t, 400, status, path)
		require.Contains(t, body, `"code":"invalid_`)
	}
	b.admin.broken = ops.ErrNotStarted
	status, body := b.do(t, http.MethodGet, "/v1/dead", "")
	require.Equal(t, 503, status)
	require.Contains(t, body, `"code":"not_started"`)
}
