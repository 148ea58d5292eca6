package agents_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/pkg/call"
)

// events answers with a stream of the given text and then does end.
func events(text string, end func(*http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		end(r)
	}
}

func closes(*http.Request) {}

func cuts(*http.Request) { panic(http.ErrAbortHandler) }

func stays(r *http.Request) { <-r.Context().Done() }

const requiresAction = `data: {"type":"agent.session.requires_action","event_id":"evt_1","session":{"id":"sess_1","object":"agent.session","status":"requires_action","required_actions":[]}}` + "\n\n"

func TestStreamReducesEvents(t *testing.T) {
	t.Parallel()
	a := serve(t, events(": heartbeat\n\n"+
		`data: {"type":"agent.session.turn.created","event_id":"evt_2","session_id":"sess_1","turn_id":"turn_1","turn":{"id":"turn_1","error":null}}`+"\n\n"+
		`data: {"type":"agent.session.turn.item.added","session_id":"sess_1","turn_id":"turn_1","output_index":0,"item":{"type":"function_call","arguments":{"n":1e400}}}`+"\n\n"+
		": heartbeat\n\nretry: 100\n\n"+requiresAction+
		"event: x\ndata: {\"type\":\"brand.new\",\ndata: \"session\":\"odd\",\"turn_id\":\"turn_2\",\"error\":null}\n\n"+
		"data: [DONE]\n\n"+`data: {"type":"after.the.end"}`+"\n\n", closes))
	opened := 0
	var got []agents.Event
	err := a.Stream(t.Context(), "sess_1", func() { opened++ }, func(e agents.Event) { got = append(got, e) })
	require.NoError(t, err)
	require.Equal(t, 1, opened)
	require.Equal(t, []agents.Event{
		{Type: "agent.session.turn.created", SessionID: "sess_1", TurnID: "turn_1"},
		{Type: "agent.session.turn.item.added", SessionID: "sess_1", TurnID: "turn_1", Item: "function_call"},
		{Type: "agent.session.requires_action", SessionID: "sess_1"},
		{Type: "brand.new", TurnID: "turn_2"},
	}, got)

	require.Equal(t, "/v1/agents/sessions/sess_1/events?include_obfuscation=false", a.Asked()[0].URI)
	require.Equal(t, "text/event-stream", a.Asked()[0].Header.Get("Accept"))
	require.Equal(t, "agents=v1", a.Asked()[0].Header.Get("OpenAI-Beta"))
}

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		opened  bool
		events  int
		class   call.RefusalClass // empty: a clean end
		code    string
	}{
		"closed":              {events(requiresAction, closes), true, 1, "", ""},
		"closed, no event":    {events("", closes), true, 0, "", ""},
		"cut":                 {events(requiresAction, cuts), true, 1, call.RefusedBusy, ""},
		"cut in mid frame":    {events(requiresAction+`data: {"type":"agent.ses`, cuts), true, 1, call.RefusedBusy, ""},
		"not JSON":            {events("data: {oops\n\n", stays), true, 0, call.RefusedBusy, ""},
		"error frame":         {events(requiresAction+`data: {"type":"error","error":{"type":"server_error","code":"stream_interrupted","message":"slow reader"},"session_id":"sess_1"}`+"\n\n", stays), true, 1, call.RefusedBusy, "stream_interrupted"},
		"error frame, auth":   {events(`data: {"type":"error","error":{"code":"unauthorized","message":"no"}}`+"\n\n", stays), true, 0, call.RefusedAuth, "unauthorized"},
		"error frame, gone":   {events(`data: {"type":"error","error":{"code":"not_found_error"}}`+"\n\n", stays), true, 0, call.RefusedGone, "not_found_error"},
		"error frame, string": {events(`data: {"error":"plain string"}`+"\n\n", stays), true, 0, call.RefusedBusy, ""},
		"error frame, empty":  {events(`data: {"type":"error"}`+"\n\n", stays), true, 0, call.RefusedBusy, ""},
		"line beyond 32 MiB":  {events("data: \""+strings.Repeat("x", 33<<20)+"\"\n\n", stays), true, 0, call.RefusedBusy, ""},
		"401":                 {apitest.ReplyJSON(401, envelope("unauthorized", "no")), false, 0, call.RefusedAuth, "unauthorized"},
		"429":                 {apitest.ReplyJSON(429, envelope("rate_limit_error", "no"), "Retry-After", "300"), false, 0, call.RefusedBusy, "rate_limit_error"},
		"HTML":                {apitest.Reply(200, "text/html", "<html>"), false, 0, call.RefusedBusy, ""},
		"no content":          {apitest.Reply(204, "", ""), false, 0, call.RefusedBusy, ""},
		"redirect":            {apitest.ReplyJSON(307, "", "Location", "/x"), false, 0, call.RefusedBusy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, test.handler)
			opened, n := false, 0
			err := a.Stream(t.Context(), "sess_1", func() { opened = true }, func(agents.Event) { n++ })
			require.Equal(t, test.opened, opened)
			require.Equal(t, test.events, n)
			require.Len(t, a.Asked(), 1)
			if test.class == "" {
				require.NoError(t, err)
				return
			}
			r := apitest.Refused(t, err)
			require.Equal(t, test.class, r.Class)
			require.Equal(t, test.code, r.Code)
			require.Equal(t, "req_1", r.RequestID)
			if name == "429" {
				require.Equal(t, 300*time.Second, r.RetryAfter)
			}
		})
	}
}

func TestAStreamOutlivesTheRequestTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 100 * time.Millisecond
	a := serve(t, events("", func(*http.Request) { <-time.After(3 * timeout) }), func(c *agents.Config) { c.Timeout = timeout })
	start := time.Now()
	require.NoError(t, a.Stream(t.Context(), "sess_1", func() {}, nil))
	require.Greater(t, time.Since(start), 2*timeout)
}

func TestAStreamIsCancelledAtOnce(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"open":    events(requiresAction, stays),
		"opening": func(_ http.ResponseWriter, r *http.Request) { stays(r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gone := make(chan struct{})
			reached := make(chan struct{})
			a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				close(reached)
				handler(w, r)
				close(gone)
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- a.Stream(ctx, "sess_1", func() {}, func(agents.Event) {}) }()
			<-reached
			cancel()
			select {
			case err := <-ended:
				require.ErrorIs(t, err, context.Canceled)
			case <-time.After(5 * time.Second):
				require.Fail(t, "the stream did not end")
			}
			select {
			case <-gone:
			case <-time.After(5 * time.Second):
				require.Fail(t, "the connection was not closed")
			}
		})
	}
}
