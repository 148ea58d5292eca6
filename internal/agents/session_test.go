package agents_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/pkg/call"
)

func sessionJSON(actions string) string {
	return `{"id":"sess_1","object":"agent.session","status":"requires_action","agent":{"tools":[{"type":"function","name":"f","parameters":{}}]},` +
		`"required_actions":[` + actions + `]}`
}

func TestArgumentsAreTheAPIsBytes(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string]string{
		"beyond 2^53":      `{"n":9007199254740993}`,
		"beyond a float":   `{"n":1e400,"m":-0.0,"k":1.10}`,
		"duplicate keys":   `{"a":1,"a":2,"b":{"c":1,"c":2}}`,
		"spaces and order": "{ \"z\" : 1 ,\n\t\"a\":2 }",
		"HTML":             `{"s":"<a&b>"}`,
		"escapes":          `{"s":"\u0000\ud800\u003c\/"}`,
		"emoji":            `{"s":"😀"}`,
		"deep":             strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
		"JSON string":      `"{\"city\":\"Paris\"}"`,
		"empty string":     `""`,
		"array":            `[]`,
		"null":             `null`,
		"large":            `{"s":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, apitest.ReplyJSON(200, sessionJSON(`{"type":"function_call","turn_id":"t","call_id":"c","name":"f","arguments":`+arguments+`}`)))
			s, err := a.Session(t.Context(), "sess_1")
			require.NoError(t, err)
			require.Len(t, s.Calls, 1)
			require.Equal(t, []byte(arguments), []byte(s.Calls[0].Arguments))
		})
	}
}

func TestMissingArgumentsAreNil(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, sessionJSON(`{"type":"function_call","turn_id":"t","call_id":"c","name":"f"}`)))
	s, err := a.Session(t.Context(), "sess_1")
	require.NoError(t, err)
	require.Nil(t, s.Calls[0].Arguments)
}

func TestSessionKeepsOrderAndCountsOthers(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, sessionJSON(`
		{"type":"function_call","turn_id":"turn_1","call_id":"call_2","name":"a.b c>*","arguments":{}},
		{"type":"environment_connection","environment_id":"env_1"},
		{"type":"brand_new","name":{"not":"a string"},"turn_id":7},
		"garbage",
		{"type":"function_call","turn_id":"turn_1","name":"without call id"},
		{"type":"function_call","turn_id":"turn_1","call_id":12,"name":"call id of another type"},
		{"type":"function_call","turn_id":"turn_\u0031","call_id":"call_1","name":"","arguments":{}}`)))
	s, err := a.Session(t.Context(), "sess_1")
	require.NoError(t, err)
	require.Equal(t, "requires_action", s.Status)
	require.Equal(t, 5, s.Others)
	require.Len(t, s.Calls, 2)
	require.Equal(t, call.Key{Session: "sess_1", Turn: "turn_1", Call: "call_2"}, s.Calls[0].Key)
	require.Equal(t, "a.b c>*", s.Calls[0].Function)
	require.Equal(t, call.Key{Session: "sess_1", Turn: "turn_1", Call: "call_1"}, s.Calls[1].Key)
}

func TestAnAnswerThatIsNoSessionIsBusyNotEmpty(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty object":      `{}`,
		"no actions member": `{"id":"sess_1","status":"idle"}`,
		"actions no array":  `{"id":"sess_1","status":"idle","required_actions":{}}`,
		"another session":   `{"id":"sess_2","status":"idle","required_actions":[]}`,
		"null":              `null`,
		"cut":               `{"id":"sess_1","required_actions":[`,
		"trailing":          sessionJSON("") + "x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, apitest.ReplyJSON(200, body))
			_, err := a.Session(t.Context(), "sess_1")
			r := apitest.Refused(t, err)
			require.Equal(t, call.RefusedBusy, r.Class)
			require.Equal(t, 200, r.Status)
			require.Equal(t, "req_1", r.RequestID)
		})
	}
	for name, handler := range map[string]func() *api{
		"HTML":     func() *api { return serve(t, apitest.Reply(200, "text/html", "<html>log in</html>")) },
		"redirect": func() *api { return serve(t, apitest.ReplyJSON(302, "", "Location", "/elsewhere")) },
	} {
		_, err := handler().Session(t.Context(), "sess_1")
		require.Equal(t, call.RefusedBusy, apitest.Refused(t, err).Class, name)
	}
}

func TestNullActionsAreNone(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, `{"id":"sess_1","status":"idle","required_actions":null}`))
	s, err := a.Session(t.Context(), "sess_1")
	require.NoError(t, err)
	require.Empty(t, s.Calls)
}

func TestReadsAreNotRepeated(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(503, envelope("service_unavailable_error", "later")))
	_, err := a.Session(t.Context(), "sess_1")
	require.Equal(t, call.RefusedBusy, apitest.Refused(t, err).Class)
	require.Len(t, a.Asked(), 1)
}

func TestCancellationIsRecognisable(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, sessionJSON("")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Session(ctx, "sess_1")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, call.RefusedBusy, apitest.Refused(t, err).Class)
	require.ErrorIs(t, a.Submit(ctx, batch("call_1")), context.Canceled)
	require.ErrorIs(t, a.Stream(ctx, "sess_1", func() {}, func(agents.Event) {}), context.Canceled)
}

func TestAnEmptySessionIDIsAnError(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, "{}"))
	_, err := a.Session(t.Context(), "")
	require.ErrorContains(t, err, "session_id")
	require.Empty(t, a.Asked())
}
