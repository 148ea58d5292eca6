package ops_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/ops/opsclient"
	"github.com/callfan/callfan/pkg/call"
)

func TestCallsAreShown(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	key := call.Key{Session: "sess_1", Turn: "turn/1", Call: "call 1"}
	b.admin.calls = []ops.Call{{Key: key, Function: "f", State: call.Retrying, Attempt: 2, SinceMS: 61_000, Explanation: "because"}}

	client, err := opsclient.New(opsclient.Config{URL: "http://" + b.Addr(), HTTPClient: b.http})
	require.NoError(t, err)
	list, err := client.Calls(t.Context(), "sess_1")
	require.NoError(t, err)
	require.Equal(t, b.admin.calls, list)
	shown, err := client.Call(t.Context(), key)
	require.NoError(t, err, "ids are escaped")
	require.Equal(t, b.admin.calls[0], shown)

	_, err = client.Call(t.Context(), call.Key{Session: "s", Turn: "t", Call: "none"})
	require.ErrorContains(t, err, "no record of it")
	status, body := b.do(t, http.MethodGet, "/v1/calls", "")
	require.Equal(t, 400, status)
	require.Contains(t, body, "give ?session=ID")
}

func TestEveryStateIsExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range call.States() {
		text := ops.Call{State: s, Function: "f", SinceMS: 61_000, Reason: "handler"}.Explain()
		require.NotContains(t, text, "unknown to this version", string(s))
		require.Regexp(t, `^[A-Z].*\.$`, text)
		seen[text] = true
	}
	require.GreaterOrEqual(t, len(seen), len(call.States())-1, "states differ in their explanation")
	require.Equal(t, "Attempt 2 failed for a technical reason 1m1s ago; the next one waits for its time.",
		ops.Call{State: call.Retrying, Attempt: 2, SinceMS: 61_000}.Explain())
}
