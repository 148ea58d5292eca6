package agents_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/pkg/call"
)

func TestSubmitRefusals(t *testing.T) {
	t.Parallel()
	const invalid = "invalid_request_error"
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		class   call.RefusalClass
		callID  string
	}{
		"unknown call":             {apitest.ReplyJSON(400, envelope(invalid, "Unknown pending tool call: call_10")), call.RefusedUnknownCall, "call_10"},
		"unknown, short id":        {apitest.ReplyJSON(400, envelope(invalid, "Unknown pending tool call: a")), call.RefusedUnknownCall, "a"},
		"unknown, not ours":        {apitest.ReplyJSON(400, envelope(invalid, "Unknown pending tool call: call_99")), call.RefusedUnknownCall, ""},
		"unknown, no id":           {apitest.ReplyJSON(400, envelope(invalid, "Unknown pending tool call.")), call.RefusedUnknownCall, ""},
		"invalid, names ours":      {apitest.ReplyJSON(400, envelope(invalid, "Output of 'call_1' is not acceptable")), call.RefusedInvalid, "call_1"},
		"invalid, names longer":    {apitest.ReplyJSON(400, envelope(invalid, "Output of call_10.")), call.RefusedInvalid, "call_10"},
		"invalid, names several":   {apitest.ReplyJSON(400, envelope(invalid, "one of call_1, call_10")), call.RefusedInvalid, ""},
		"invalid, names a word":    {apitest.ReplyJSON(400, envelope(invalid, "a lone surrogate")), call.RefusedInvalid, ""},
		"another turn's call":      {apitest.ReplyJSON(400, envelope(invalid, "exec-12ab is not pending")), call.RefusedInvalid, ""},
		"invalid, 422":             {apitest.ReplyJSON(422, envelope(invalid, "no")), call.RefusedInvalid, ""},
		"invalid, odd code":        {apitest.ReplyJSON(400, `{"error":{"code":17,"message":null,"type":null}}`), call.RefusedInvalid, ""},
		"too large by message":     {apitest.ReplyJSON(400, envelope(invalid, "The tool result for call_1 is too large")), call.RefusedTooLarge, "call_1"},
		"too large by code":        {apitest.ReplyJSON(400, envelope("string_above_max_length", "no")), call.RefusedTooLarge, ""},
		"too large by status":      {apitest.ReplyJSON(413, envelope("request_too_large", "no")), call.RefusedTooLarge, ""},
		"too large by proxy":       {apitest.Reply(413, "text/html", "<html>"), call.RefusedTooLarge, ""},
		"conflict":                 {apitest.ReplyJSON(409, envelope("conflict_error", "The tool call already has a different result.")), call.RefusedConflict, ""},
		"conflict that names":      {apitest.ReplyJSON(409, envelope("conflict_error", "call_1 has a result")), call.RefusedConflict, "call_1"},
		"conflict without body":    {apitest.ReplyJSON(409, ""), call.RefusedConflict, ""},
		"401":                      {apitest.ReplyJSON(401, `{"error":{"type":"invalid_request_error","code":null,"message":"no","param":null}}`), call.RefusedAuth, ""},
		"403":                      {apitest.ReplyJSON(403, envelope("forbidden", "no")), call.RefusedAuth, ""},
		"beta refused":             {apitest.ReplyJSON(400, envelope("invalid_beta", "no")), call.RefusedAuth, ""},
		"404":                      {apitest.ReplyJSON(404, envelope("not_found_error", "no such session")), call.RefusedGone, ""},
		"404 of a wrong path":      {apitest.ReplyJSON(404, envelope(invalid, "Invalid URL (POST /agents)")), call.RefusedBusy, ""},
		"404 of a proxy":           {apitest.Reply(404, "text/html", "<html>not found</html>"), call.RefusedBusy, ""},
		"408":                      {apitest.ReplyJSON(408, envelope("timeout", "no")), call.RefusedBusy, ""},
		"424":                      {apitest.ReplyJSON(424, envelope("mcp_server_startup_failed", "no")), call.RefusedBusy, ""},
		"429":                      {apitest.ReplyJSON(429, envelope("rate_limit_error", "no")), call.RefusedBusy, ""},
		"500":                      {apitest.ReplyJSON(500, envelope("internal_error", "no")), call.RefusedBusy, ""},
		"502 HTML":                 {apitest.Reply(502, "text/html", "<html>bad gateway</html>"), call.RefusedBusy, ""},
		"503":                      {apitest.ReplyJSON(503, envelope("server_is_overloaded", "no")), call.RefusedBusy, ""},
		"400 HTML":                 {apitest.Reply(400, "text/html", "<html>bad request</html>"), call.RefusedBusy, ""},
		"400 plain string":         {apitest.ReplyJSON(400, `{"error":"plain string"}`), call.RefusedBusy, ""},
		"500 plain string":         {apitest.ReplyJSON(500, `{"error":"plain string"}`), call.RefusedBusy, ""},
		"500 array":                {apitest.ReplyJSON(500, `{"error":[1]}`), call.RefusedBusy, ""},
		"500 empty":                {apitest.ReplyJSON(500, ``), call.RefusedBusy, ""},
		"cut refusal":              {cutRefusal, call.RefusedBusy, ""},
		"retry asked by a header":  {apitest.ReplyJSON(400, envelope(invalid, "no"), "X-Should-Retry", "true"), call.RefusedInvalid, ""},
		"message beyond all sizes": {apitest.ReplyJSON(500, envelope("internal_error", strings.Repeat("é", 100_000))), call.RefusedBusy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, test.handler)
			r := apitest.Refused(t, a.Submit(t.Context(), batch("call_1", "call_10", "a")))
			require.Equal(t, test.class, r.Class, r.Error())
			require.Equal(t, test.callID, r.CallID)
			require.NotZero(t, r.Status)
			require.Equal(t, "req_1", r.RequestID)
			require.Less(t, len(r.Error()), 1000)
			require.Len(t, a.Asked(), 1, "the client must not repeat a request")
		})
	}
}

func cutRefusal(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Request-Id", "req_1")
	w.Header().Set("Content-Length", "100")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write([]byte(`{"error":`))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestRefusalsKeepTheCodeAndTheMessage(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(409, envelope("conflict_error", "it has another result")))
	r := apitest.Refused(t, a.Submit(t.Context(), batch("call_1")))
	require.Equal(t, "conflict_error", r.Code)
	require.Equal(t, 409, r.Status)
	require.ErrorContains(t, r, "it has another result")

	a = serve(t, apitest.ReplyJSON(500, `{"error":"plain string"}`))
	require.ErrorContains(t, a.Submit(t.Context(), batch("call_1")), "plain string")
}

func TestAConflictIsOnlyAConflictOfASubmission(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(409, envelope("conflict_error", "busy")))
	_, err := a.Session(t.Context(), "sess_1")
	require.Equal(t, call.RefusedBusy, apitest.Refused(t, err).Class)
}

func TestASessionThatIsGone(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(404, envelope("not_found_error", "no such session")))
	_, err := a.Session(t.Context(), "sess_1")
	require.Equal(t, call.RefusedGone, apitest.Refused(t, err).Class)
	require.Equal(t, call.RefusedGone, apitest.Refused(t, a.Stream(t.Context(), "sess_1", func() {}, nil)).Class)
}

func TestAServerThatIsAwayIsBusy(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	client, err := agents.New(agents.Config{APIKey: apitest.Secret, BaseURL: srv.URL})
	require.NoError(t, err)
	r := apitest.Refused(t, client.Submit(t.Context(), batch("call_1")))
	require.Equal(t, call.RefusedBusy, r.Class)
	require.Zero(t, r.Status)
}

func TestALostAnswerIsBusy(t *testing.T) {
	t.Parallel()
	a := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	require.Equal(t, call.RefusedBusy, apitest.Refused(t, a.Submit(t.Context(), batch("call_1"))).Class)
	require.Len(t, a.Asked(), 1)
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	server := time.Now().Add(-time.Hour).UTC() // a clock that is an hour slow
	for name, test := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"none":               {nil, 0},
		"seconds":            {[]string{"Retry-After", "1"}, time.Second},
		"fraction":           {[]string{"Retry-After", "0.25"}, 250 * time.Millisecond},
		"beyond 120 s":       {[]string{"Retry-After", "300"}, 300 * time.Second},
		"milliseconds":       {[]string{"Retry-After-Ms", "1500"}, 1500 * time.Millisecond},
		"milliseconds win":   {[]string{"Retry-After-Ms", "20", "Retry-After", "9"}, 20 * time.Millisecond},
		"bad milliseconds":   {[]string{"Retry-After-Ms", "soon", "Retry-After", "9"}, 9 * time.Second},
		"date":               {[]string{"Date", server.Format(http.TimeFormat), "Retry-After", server.Add(90 * time.Second).Format(http.TimeFormat)}, 90 * time.Second},
		"date in the past":   {[]string{"Date", server.Format(http.TimeFormat), "Retry-After", server.Add(-time.Minute).Format(http.TimeFormat)}, 0},
		"negative":           {[]string{"Retry-After", "-5"}, 0},
		"not a number":       {[]string{"Retry-After", "NaN"}, 0},
		"for ever":           {[]string{"Retry-After", "1e999"}, day},
		"overflow":           {[]string{"Retry-After", "1e18"}, day},
		"neither of the two": {[]string{"Retry-After", "tomorrow"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, apitest.ReplyJSON(429, envelope("rate_limit_error", "slow down"), test.headers...))
			r := apitest.Refused(t, a.Submit(t.Context(), batch("call_1")))
			require.Equal(t, call.RefusedBusy, r.Class)
			require.Equal(t, test.want, r.RetryAfter)
			require.Len(t, a.Asked(), 1)
		})
	}
}
