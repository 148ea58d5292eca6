package body_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results/internal/body"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOf(rapid.Byte())
		want := call.Result{
			Success: rapid.Bool().Draw(t, "success"),
			Error:   string(bytes.Draw(t, "error")),
			Reason:  string(bytes.Draw(t, "reason")),
		}
		if output := bytes.Draw(t, "output"); len(output) > 0 {
			want.Output = json.RawMessage(output)
		}
		got, err := body.Parse(body.Append(nil, want))
		require.NoError(t, err)
		require.Equal(t, want, *got)
	})
}

func TestParseRefusesWhatAppendDidNotMake(t *testing.T) {
	t.Parallel()
	whole := body.Append(nil, call.Result{Error: "error", Reason: "reason"})
	for n := range len(whole) {
		_, err := body.Parse(whole[:n])
		require.ErrorIs(t, err, body.ErrMalformed, "cut to %d bytes", n)
	}
	for _, b := range []string{"\x02\x01\x00\x00", "\x01\x02\x00\x00", "\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		_, err := body.Parse([]byte(b))
		require.ErrorIs(t, err, body.ErrMalformed, "%q", b)
	}
}
