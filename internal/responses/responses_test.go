package responses_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/internal/responses"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a client and the server that it asks.
type api struct {
	*responses.Client
	*apitest.Server
}

func serve(t *testing.T, handler http.HandlerFunc, changes ...func(*responses.Config)) *api {
	t.Helper()
	server := apitest.Serve(t, handler)
	var cfg responses.Config
	cfg.APIKey, cfg.BaseURL = apitest.Secret, server.URL
	for _, change := range changes {
		change(&cfg)
	}
	client, err := responses.New(cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &api{client, server}
}

// events answers with a stream of frames and then does end.
func events(end func(*http.Request), frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(http.StatusOK)
		for _, frame := range frames {
			_, _ = io.WriteString(w, "data: "+frame+"\n\n")
		}
		_ = http.NewResponseController(w).Flush()
		end(r)
	}
}

func closes(*http.Request) {}

func cuts(*http.Request) { panic(http.ErrAbortHandler) }

func stays(r *http.Request) { <-r.Context().Done() }

// envelope is the API's error body.
func envelope(code, message, param string) string {
	return `{"error":{"type":"invalid_request_error","code":` + quoted(code) + `,"message":` + quoted(message) + `,"param":` + quoted(param) + `}}`
}

func quoted(s string) string {
	if s == "" {
		return "null"
	}
	b, _ := json.Marshal(s)
	return string(b)
}

// told collects events.
type told []runs.Event

func (e *told) on(event runs.Event) error {
	*e = append(*e, event)
	return nil
}

// The frames of a response with two calls, as the API sends them. The whitespace and the
// escapes of the items belong to the user.
const (
	callOne = `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"get_weather","arguments":"{\"n\": 9007199254740993}",  "status":"completed","x":"\u003c<"}`
	callTwo = `{"id":"fc_2","type":"function_call","call_id":"call_2","name":"get_time","arguments":"{}","status":"completed"}`

	created  = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[],"error":null}}`
	progress = `{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress"}}`
	addedOne = `{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"fc_1","type":"function_call","name":"get_weather","arguments":""}}`
	addedTwo = `{"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":{"id":"fc_2","type":"function_call","name":"get_time","arguments":""}}`
	argument = `{"type":"response.function_call_arguments.delta","sequence_number":4,"output_index":0,"item_id":"fc_1","delta":"{","obfuscation":"x"}`
	doneTwo  = `{"type":"response.output_item.done","sequence_number":5,"output_index":1,"item":` + callTwo + `}`
	doneOne  = `{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":` + callOne + `}`
	whole    = `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[` + callOne + `,` + callTwo + `]}`
	ended    = `{"type":"response.completed","sequence_number":7,"response":` + whole + `}`
)

func outcome() *runs.Outcome {
	return &runs.Outcome{Status: "completed", Output: []json.RawMessage{json.RawMessage(callOne), json.RawMessage(callTwo)}}
}

func TestNewRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	_, err := responses.New(responses.Config{})
	require.ErrorContains(t, err, "OPENAI_API_KEY")
	var cfg responses.Config
	cfg.APIKey, cfg.Idle = apitest.Secret, -1
	_, err = responses.New(cfg)
	require.ErrorContains(t, err, "negative")
	require.NotContains(t, err.Error(), apitest.Secret)
}

func TestARequestIsPostedAsItIs(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, whole), func(c *responses.Config) { c.Organization, c.Project = "org_1", "proj_1" })
	const body = `{ "model":"m", "input":"\u003c <", "n":9007199254740993, "stream":false }`
	var got told
	require.NoError(t, a.Create(t.Context(), json.RawMessage(body), "key_1", got.on))
	asked := a.Asked()[0]
	require.Equal(t, "POST", asked.Method)
	require.Equal(t, "/v1/responses", asked.URI)
	require.Equal(t, body, asked.Body)
	require.Equal(t, "key_1", asked.Header.Get("Idempotency-Key"))
	require.Equal(t, "application/json", asked.Header.Get("Content-Type"))
	require.Equal(t, "Bearer "+apitest.Secret, asked.Header.Get("Authorization"))
	require.Equal(t, "org_1", asked.Header.Get("OpenAI-Organization"))
	require.Empty(t, asked.Header.Get("OpenAI-Beta"))
}

func TestARequestIsSentOnce(t *testing.T) {
	t.Parallel()
	first := true
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if first {
			first = false
			apitest.ReplyJSON(200, whole)(w, r)
			return
		}
		panic(http.ErrAbortHandler) // a kept connection that breaks: net/http would repeat the request
	})
	var got told
	require.NoError(t, a.Create(t.Context(), json.RawMessage(`{}`), "key_1", got.on))
	r := apitest.Refused(t, a.Create(t.Context(), json.RawMessage(`{}`), "key_2", got.on))
	require.Equal(t, call.RefusedBusy, r.Class)
	require.Len(t, a.Asked(), 2)
}

func TestItemsOfAConversation(t *testing.T) {
	t.Parallel()
	const item = `{"type":"message", "id":"msg_2","n":9007199254740993}`
	a := serve(t, apitest.ReplyJSON(200, `{"object":"list","data":[`+item+`,`+callOne+`],"has_more":true,"last_id":"fc_1"}`))
	got, err := a.Items(t.Context(), "conv/1")
	require.NoError(t, err)
	require.Equal(t, []json.RawMessage{json.RawMessage(item), json.RawMessage(callOne)}, got)
	require.Equal(t, "GET", a.Asked()[0].Method)
	require.Equal(t, "/v1/conversations/conv%2F1/items?limit=100&order=desc", a.Asked()[0].URI)

	for name, test := range map[string]struct {
		handler http.HandlerFunc
		class   call.RefusalClass
	}{
		"none":    {apitest.ReplyJSON(404, envelope("not_found_error", "Conversation not found", "")), call.RefusedGone},
		"no list": {apitest.ReplyJSON(200, `{"object":"list"}`), call.RefusedBusy},
		"HTML":    {apitest.Reply(200, "text/html", "<html>"), call.RefusedBusy},
	} {
		a := serve(t, test.handler)
		_, err := a.Items(t.Context(), "conv_1")
		require.Equal(t, test.class, apitest.Refused(t, err).Class, name)
	}
	_, err = a.Items(t.Context(), "")
	require.Equal(t, call.RefusedInvalid, apitest.Refused(t, err).Class)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		class   call.RefusalClass // empty: nil
	}{
		"cancelled":       {apitest.ReplyJSON(200, `{"id":"resp_1","status":"cancelled"}`), ""},
		"over":            {apitest.ReplyJSON(400, envelope("", "Cannot cancel a completed response.", "")), ""},
		"not background":  {apitest.ReplyJSON(400, envelope("", "Only background responses can be cancelled", "")), ""},
		"gone":            {apitest.ReplyJSON(404, envelope("not_found_error", "Response with id 'resp_1' not found.", "")), ""},
		"conflict":        {apitest.ReplyJSON(409, envelope("conflict_error", "already cancelled", "")), ""},
		"404 of a proxy":  {apitest.Reply(404, "text/html", "<html>"), call.RefusedBusy},
		"wrong base URL":  {apitest.ReplyJSON(404, envelope("", "Invalid URL (POST /responses)", "")), call.RefusedBusy},
		"401":             {apitest.ReplyJSON(401, envelope("invalid_api_key", "no", "")), call.RefusedAuth},
		"500":             {apitest.ReplyJSON(500, envelope("server_error", "no", "")), call.RefusedBusy},
		"nothing answers": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, call.RefusedBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, test.handler)
			err := a.Cancel(t.Context(), "resp_1")
			require.Equal(t, "/v1/responses/resp_1/cancel", a.Asked()[0].URI)
			if test.class == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, test.class, apitest.Refused(t, err).Class)
		})
	}
}

func TestIDsAreNotEmpty(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, whole))
	var got told
	require.Equal(t, call.RefusedInvalid, apitest.Refused(t, a.Cancel(t.Context(), "")).Class)
	require.Equal(t, call.RefusedInvalid, apitest.Refused(t, a.Retrieve(t.Context(), "", 0, true, got.on)).Class)
	require.Empty(t, a.Asked())
}

func TestCreateRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler                    http.HandlerFunc
		class                      call.RefusalClass
		code, param, callID, about string
	}{
		"invalid":                {apitest.ReplyJSON(400, envelope("invalid_value", "bad input", "input[0]")), call.RefusedInvalid, "invalid_value", "input[0]", "", "bad input"},
		"previous response":      {apitest.ReplyJSON(400, envelope("previous_response_not_found", "Previous response with id 'resp_0' not found.", "previous_response_id")), call.RefusedInvalid, "previous_response_not_found", "previous_response_id", "", "resp_0"},
		"previous response, 404": {apitest.ReplyJSON(404, envelope("", "Previous response with id 'resp_0' not found.", "previous_response_id")), call.RefusedInvalid, "previous_response_not_found", "previous_response_id", "", "resp_0"},
		"missing output":         {apitest.ReplyJSON(400, envelope("", "No tool output found for function call call_1.", "input")), call.RefusedInvalid, "", "input", "call_1", "No tool output"},
		"unknown call":           {apitest.ReplyJSON(400, envelope("", "No tool call found for function call output with call_id call_9.", "input")), call.RefusedInvalid, "", "input", "call_9", ""},
		"no such model":          {apitest.ReplyJSON(404, envelope("model_not_found", "no such model", "model")), call.RefusedInvalid, "model_not_found", "model", "", ""},
		"context length":         {apitest.ReplyJSON(400, envelope("context_length_exceeded", "Your input exceeds the context window of this model.", "input")), call.RefusedInvalid, "context_length_exceeded", "input", "", ""},
		"output too large":       {apitest.ReplyJSON(400, envelope("string_above_max_length", "too much", "input[0].output")), call.RefusedTooLarge, "string_above_max_length", "input[0].output", "", ""},
		"413 of a proxy":         {apitest.Reply(413, "text/html", "<html>"), call.RefusedTooLarge, "", "", "", ""},
		"401":                    {apitest.ReplyJSON(401, envelope("invalid_api_key", "Incorrect API key provided: "+apitest.Secret, "")), call.RefusedAuth, "invalid_api_key", "", "", "[API key]"},
		"403":                    {apitest.ReplyJSON(403, envelope("forbidden", "no", "")), call.RefusedAuth, "forbidden", "", "", ""},
		"wrong base URL":         {apitest.ReplyJSON(404, envelope("", "Invalid URL (POST /responses)", "")), call.RefusedBusy, "", "", "", ""},
		"404 of a proxy":         {apitest.Reply(404, "text/html", "<html>"), call.RefusedBusy, "", "", "", ""},
		"conversation in use":    {apitest.ReplyJSON(409, envelope("conversation_locked", "in use", "")), call.RefusedBusy, "conversation_locked", "", "", ""},
		"429":                    {apitest.ReplyJSON(429, envelope("rate_limit_exceeded", "slow down", ""), "Retry-After", "300"), call.RefusedBusy, "rate_limit_exceeded", "", "", ""},
		"no quota":               {apitest.ReplyJSON(429, envelope("insufficient_quota", "pay", "")), call.RefusedBusy, "insufficient_quota", "", "", ""},
		"500":                    {apitest.ReplyJSON(500, envelope("server_error", "no", "")), call.RefusedBusy, "server_error", "", "", ""},
		"502":                    {apitest.Reply(502, "text/html", "<html>"), call.RefusedBusy, "", "", "", ""},
		"redirect":               {apitest.ReplyJSON(307, "", "Location", "/x"), call.RefusedBusy, "", "", "", "redirect"},
		"HTML":                   {apitest.Reply(200, "text/html", "<html>"), call.RefusedBusy, "", "", "", "unexpected answer"},
		"no content":             {apitest.Reply(204, "", ""), call.RefusedBusy, "", "", "", ""},
		"not a response":         {apitest.ReplyJSON(200, `{"object":"list","data":[]}`), call.RefusedBusy, "", "", "", "without an id"},
		"a status of its own":    {apitest.ReplyJSON(200, `{"id":"resp_1","status":"odd"}`), call.RefusedBusy, "", "", "", "odd"},
		"cut": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			apitest.ReplyJSON(200, `{"id":`)(w, r)
		}, call.RefusedBusy, "", "", "", "cut"},
		"asked for a retry all day": {apitest.ReplyJSON(400, envelope("", "no", ""), "X-Should-Retry", "true"), call.RefusedInvalid, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, test.handler)
			for _, body := range []string{`{"stream":true}`, `{"background":true}`, `{}`} {
				var got told
				r := apitest.Refused(t, a.Create(t.Context(), json.RawMessage(body), "key_1", got.on))
				require.Empty(t, got)
				require.Equal(t, test.class, r.Class, r.Error())
				require.Equal(t, test.code, r.Code)
				require.Equal(t, test.param, r.Param)
				require.Equal(t, test.callID, r.CallID)
				require.ErrorContains(t, r, test.about)
				require.NotZero(t, r.Status)
				if name != "cut" {
					require.Equal(t, "req_1", r.RequestID)
				}
				if name == "429" {
					require.Equal(t, 5*time.Minute, r.RetryAfter)
				}
			}
			require.Len(t, a.Asked(), 3, "the client must not repeat a request")
		})
	}
}

func TestAServerThatIsAwayIsBusy(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	var cfg responses.Config
	cfg.BaseURL = srv.URL
	client, err := responses.New(cfg)
	require.NoError(t, err)
	var got told
	r := apitest.Refused(t, client.Create(t.Context(), json.RawMessage(`{"stream":true}`), "k", got.on))
	require.Equal(t, call.RefusedBusy, r.Class)
	require.Zero(t, r.Status)
}

// kinds names what was told, for short.
func (e told) kinds() string {
	var b strings.Builder
	for _, event := range e {
		b.WriteString(string(event.Kind) + " ")
	}
	return strings.TrimSpace(b.String())
}
