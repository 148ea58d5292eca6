package ops_test

import (
	"context"
	"net/http"
	"strings"
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

func TestCallsOfAllSessionsAreListedByState(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	c := b.client(t, "")
	list, err := c.CallsIn(t.Context(), "parked", 0)
	require.NoError(t, err)
	require.Empty(t, list.Calls)
	require.False(t, list.More)
	require.Equal(t, "[parked] 100", b.admin.asked)
	_, body := b.do(t, http.MethodGet, "/v1/calls?state=parked", "")
	require.Equal(t, `{"calls":[]}`, body, "nothing about more")

	b.admin.calls, b.admin.more = []ops.Call{{Key: call.Key{Session: "s", Turn: "t", Call: "c"}, State: call.Parked}}, true
	list, err = c.CallsIn(t.Context(), ops.OpenCalls, 1)
	require.NoError(t, err)
	require.Equal(t, ops.CallList{Calls: b.admin.calls, More: true}, list)
	require.Equal(t, "[seen held queued retrying parked] 1", b.admin.asked)

	for query, want := range map[string]string{
		"state=settled":           `use open, or one of seen, held, queued, retrying, parked, succeeded, failed, submitted: calls that have ended`,
		"state=":                  `state is \"\"`,
		"state=open&session=s":    "give session or state, not both",
		"state=parked&limit=0":    `limit is \"0\"; use 1 to 1000`,
		"state=parked&limit=1001": `limit is \"1001\"; use 1 to 1000`,
	} {
		status, body := b.do(t, http.MethodGet, "/v1/calls?"+query, "")
		require.Equal(t, 400, status, query)
		require.Contains(t, body, want, query)
	}
	b.admin.err = context.DeadlineExceeded
	status, body := b.do(t, http.MethodGet, "/v1/calls?state=open", "")
	require.Equal(t, 503, status)
	require.Contains(t, body, "list those of one session")
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

	key := call.Key{Session: "s", Turn: "t", Call: "c"}
	at := func(s call.State, note string) ops.Step { return ops.Step{State: s, Note: note} }
	for want, c := range map[string]ops.Call{
		"Attempt 2 failed for a technical reason 1m1s ago (no route.\x1b); the next one waits for its time.": {
			State: call.Retrying, Attempt: 2, History: []ops.Step{at(call.Seen, "x"), at(call.Retrying, "no route.\x1b")},
		},
		"Attempt 1 may have taken effect and nobody can tell (verify timed out), so the call has waited for an operator for 1m1s: " +
			"if it took effect, callfan calls answer s/t/c --output TEXT gives the model its result; if not, callfan calls rerun s/t/c " +
			"runs it again; callfan calls answer s/t/c --error TEXT gives it up.": {
			State: call.Parked, History: []ops.Step{at(call.Queued, ""), at(call.Parked, "verify timed out.")},
		},
		"Its result (succeeded, handler) was saved 1m1s ago and is not yet accepted by the API.": {
			State: call.Succeeded, Reason: "handler", History: []ops.Step{at(call.Queued, ""), at(call.Succeeded, "success, by x")},
		},
		"Its result (failed, handler) was saved 1m1s ago and is not yet accepted by the API, which said last: busy (HTTP 503).": {
			State: call.Failed, Reason: "handler", History: []ops.Step{at(call.Failed, "failure, by x"), at(call.Failed, "busy (HTTP 503)"), at(call.Failed, "")},
		},
	} {
		c.Key, c.SinceMS = key, 61_000
		require.Equal(t, strings.Replace(want, "(no route.\x1b)", `("no route.\x1b")`, 1), c.Explain())
	}
}
