package agents_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/pkg/call"
)

func TestListFollowsThePages(t *testing.T) {
	t.Parallel()
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		first := 0
		if after := r.URL.Query().Get("after"); after != "" {
			_, _ = fmt.Sscanf(after, "sess_%d", &first)
			first++
		}
		items := make([]string, 0, 100)
		for i := first; i < min(first+100, 250); i++ {
			items = append(items, fmt.Sprintf(`{"id":"sess_%d","status":"idle","agent":{"tools":[]},"required_actions":[]}`, i))
		}
		apitest.ReplyJSON(200, fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%t}`, strings.Join(items, ","), first+100 < 250))(w, r)
	})
	n := 0
	for s, err := range a.List(t.Context(), agents.Selector{AgentID: "agent_1", Metadata: map[string]string{"dispatch": "nats", "a b": "c&d"}}) {
		require.NoError(t, err)
		require.Equal(t, agents.Summary{ID: fmt.Sprintf("sess_%d", n), Status: "idle"}, s)
		n++
	}
	require.Equal(t, 250, n)
	require.Len(t, a.Asked(), 3)
	u, err := url.Parse(a.Asked()[1].URI)
	require.NoError(t, err)
	require.Equal(t, url.Values{
		"after": {"sess_99"}, "limit": {"100"}, "agent_id": {"agent_1"},
		"metadata[dispatch]": {"nats"}, "metadata[a b]": {"c&d"},
	}, u.Query())
}

func TestListStopsWhenTheCallerDoes(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, `{"data":[{"id":"sess_1","status":"idle"},{"id":"sess_2","status":"idle"}],"has_more":true}`))
	for s, err := range a.List(t.Context(), agents.Selector{}) {
		require.NoError(t, err)
		require.Equal(t, "sess_1", s.ID)
		break
	}
	require.Len(t, a.Asked(), 1)
}

func TestListErrors(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"refused":             apitest.ReplyJSON(500, envelope("internal_error", "no")),
		"HTML":                apitest.Reply(200, "text/html", "<html>"),
		"pages without end":   apitest.ReplyJSON(200, `{"data":[{"id":"sess_1","status":"idle"}],"has_more":true}`),
		"empty but not ended": apitest.ReplyJSON(200, `{"data":[],"has_more":true}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, handler)
			var last error
			for _, err := range a.List(t.Context(), agents.Selector{}) {
				require.NoError(t, last, "an error ends the list")
				last = err
			}
			require.Equal(t, call.RefusedBusy, apitest.Refused(t, last).Class)
			require.LessOrEqual(t, len(a.Asked()), 2)
		})
	}
}
