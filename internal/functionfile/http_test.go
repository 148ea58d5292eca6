package functionfile

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/executor/executortest"
)

// posting loads a file whose function f posts to a server.
func posting(t *testing.T, extra string, handler http.HandlerFunc) *executor.Executor {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return postingTo(t, extra, server.URL+"/f?x=1")
}

func postingTo(t *testing.T, extra, url string) *executor.Executor {
	t.Helper()
	f, err := Load(write(t, one("timeout: 10s", `http: {url: "`+url+`"`+extra+`}`)))
	require.NoError(t, err)
	ex := executortest.New(t)
	require.NoError(t, f.Add(ex))
	return ex
}

func TestArgumentsArePosted(t *testing.T) {
	t.Setenv("FUNCTIONFILE_TOKEN", "s3cret")
	var got *http.Request
	var body string
	ex := posting(t, `, headers: {Authorization: "Bearer ${FUNCTIONFILE_TOKEN}"}`, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, body = r, string(raw)
		_, _ = io.WriteString(w, `{"<temperature>": 22}`)
	})
	k := call.Key{Session: "sess 1", Turn: "turn_1", Call: "call\r\n1"}
	arguments := `{"n":9007199254740993,"m":1e400,"a":1,"a":2}`
	o := executortest.Call(t, ex, "f", arguments, executortest.WithKey(k), executortest.WithAttempt(3))
	require.Equal(t, `{"<temperature>": 22}`, executortest.Text(t, o))
	require.Equal(t, arguments, body)
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "/f?x=1", got.RequestURI)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Idempotency-Key": k.IdempotencyKey(), "Authorization": "Bearer s3cret",
		"X-Fn-Session-Id": "sess%201", "X-Fn-Turn-Id": "turn_1", "X-Fn-Call-Id": "call%0D%0A1", "X-Fn-Function": "f", "X-Fn-Attempt": "3",
	} {
		require.Equal(t, want, got.Header.Get(name), name)
	}
	at, err := time.Parse(time.RFC3339Nano, got.Header.Get("X-Fn-Deadline"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(10*time.Second), at, 5*time.Second)
}

func TestStatusDecides(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxError+1)
	for name, tt := range map[string]struct {
		status     int
		body       string
		retryAfter string
		want       call.Outcome
	}{
		"200":            {200, "text", "", call.Outcome{Kind: call.Success, Output: []byte(`"text"`)}},
		"201, empty":     {201, "", "", call.Outcome{Kind: call.Success, Output: []byte(`""`)}},
		"204":            {204, "", "", call.Outcome{Kind: call.Success, Output: []byte(`null`)}},
		"400":            {400, " bad city\n", "", call.Outcome{Kind: call.Failure, Error: "bad city"}},
		"404, no body":   {404, "", "", call.Outcome{Kind: call.Failure, Error: "HTTP 404 Not Found"}},
		"422, long":      {422, long, "", call.Outcome{Kind: call.Failure, Error: long[:maxError] + "…"}},
		"408":            {408, "slow", "", call.Outcome{Kind: call.Retry, Reason: "slow"}},
		"425":            {425, "early", "", call.Outcome{Kind: call.Retry, Reason: "early"}},
		"429 with delay": {429, "busy", "7", call.Outcome{Kind: call.Retry, Reason: "busy", After: 7 * time.Second}},
		"500":            {500, "oops", "", call.Outcome{Kind: call.Retry, Reason: "oops"}},
		"503 for ever":   {503, "", "999999999999999", call.Outcome{Kind: call.Retry, Reason: "HTTP 503 Service Unavailable", After: 10 * time.Minute}},
		"503, past date": {503, "x", "Mon, 02 Jan 2006 15:04:05 GMT", call.Outcome{Kind: call.Retry, Reason: "x"}},
		"503, odd delay": {503, "x", "soon", call.Outcome{Kind: call.Retry, Reason: "x"}},
		"304":            {304, "", "", call.Outcome{Kind: call.Failure, Cause: "redirect", Error: "the function's endpoint redirects elsewhere (HTTP 304), which is not followed"}},
		"invalid in 400": {400, "a\xffb", "", call.Outcome{Kind: call.Failure, Error: "a\uFFFDb"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ex := posting(t, "", func(w http.ResponseWriter, _ *http.Request) {
				if tt.retryAfter != "" {
					w.Header().Set("Retry-After", tt.retryAfter)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			o := executortest.Call(t, ex, "f", "{}")
			o.Key, o.Nonce = call.Key{}, ""
			require.Equal(t, tt.want, o)
		})
	}
}

func TestCauseOfAFailure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status      int
		cause, body string
		want        call.Outcome
	}{
		"a word":             {422, "no_funds", "not enough money", call.Outcome{Kind: call.Failure, Cause: "no_funds", Error: "not enough money"}},
		"not to be repeated": {503, "closed", "closed for ever", call.Outcome{Kind: call.Failure, Cause: "closed", Error: "closed for ever"}},
		"arguments":          {400, "invalid_arguments", "no city", call.Outcome{Kind: call.Failure, Cause: "invalid_arguments", Error: "invalid arguments: no city"}},
		"said already":       {422, "invalid_arguments", "invalid arguments: x", call.Outcome{Kind: call.Failure, Cause: "invalid_arguments", Error: "invalid arguments: x"}},
		"crash":              {500, "panic", "stack trace", call.Outcome{Kind: call.Failure, Cause: "panic", Error: "function crashed"}},
		"no word":            {500, "Not A Word", "oops", call.Outcome{Kind: call.Retry, Reason: "oops"}},
		"success":            {200, "no_funds", "text", call.Outcome{Kind: call.Success, Output: []byte(`"text"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ex := posting(t, "", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Fn-Cause", tt.cause)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			o := executortest.Call(t, ex, "f", "{}")
			o.Key, o.Nonce = call.Key{}, ""
			require.Equal(t, tt.want, o)
		})
	}
}

func TestHTTPOutputNoneIsNoValue(t *testing.T) {
	t.Parallel()
	ex := posting(t, ", output: none", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") })
	o := executortest.Call(t, ex, "f", "{}")
	require.Equal(t, call.Success, o.Kind, o.Error)
	require.Equal(t, "null", string(o.Output))
	ex = posting(t, ", output: none", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	require.Equal(t, call.Retry, executortest.Call(t, ex, "f", "{}").Kind)
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(other.Close)
	var path string
	ex := posting(t, "", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved":
			raw, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, r.Method+" "+string(raw))
		case path == "other":
			http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
		case path == "get":
			http.Redirect(w, r, "/moved", http.StatusSeeOther)
		default:
			http.Redirect(w, r, "/moved", http.StatusPermanentRedirect)
		}
	})
	require.Equal(t, `POST {"a":1}`, executortest.Text(t, executortest.Call(t, ex, "f", `{"a":1}`)))
	for _, path = range []string{"other", "get"} {
		require.Equal(t, "redirect", executortest.Call(t, ex, "f", "{}").Cause, path)
	}
	require.Zero(t, elsewhere)
}

func TestBrokenEndpointIsATechnicalFailure(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	o := executortest.Call(t, postingTo(t, "", server.URL+"/secret-path"), "f", "{}")
	require.Equal(t, call.Retry, o.Kind)
	require.NotContains(t, o.Reason, "secret-path")

	o = executortest.Call(t, posting(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	}), "f", "{}")
	require.Equal(t, call.Retry, o.Kind, "half an answer is no success")

	block := make(chan struct{})
	ex := posting(t, "", func(http.ResponseWriter, *http.Request) { <-block })
	defer close(block)
	o = executortest.Call(t, ex, "f", "{}", executortest.WithTimeout(100*time.Millisecond))
	require.Equal(t, "timed out after 100ms", o.Error)
}

// An endpoint that dies with the call is not asked a second time behind the policy's back.
func TestCallIsPostedOnce(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	ex := posting(t, "", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if posts.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	})
	require.Equal(t, call.Success, executortest.Call(t, ex, "f", `{}`).Kind) // its connection is used again
	require.Equal(t, call.Retry, executortest.Call(t, ex, "f", `{}`).Kind)
	require.EqualValues(t, 2, posts.Load())
}

func TestHTTPOutputIsBounded(t *testing.T) {
	t.Parallel()
	ex := posting(t, "", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxOutput+1)) })
	require.Equal(t, call.ReasonTooLarge, executortest.Call(t, ex, "f", "{}").Cause)
	ex = posting(t, ", output: content", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"type":"input_text","text":"a"}]`)
	})
	require.Equal(t, `[{"type":"input_text","text":"a"}]`, string(executortest.Call(t, ex, "f", "{}").Output))
}
