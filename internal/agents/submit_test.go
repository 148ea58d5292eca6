package agents_test

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/pkg/call"
)

func batch(ids ...string) call.Batch {
	b := call.Batch{Session: "sess_1", IdempotencyKey: "key_1"}
	for _, id := range ids {
		b.Answers = append(b.Answers, call.Answer{
			Key:    call.Key{Session: "sess_1", Turn: "turn_1", Call: id},
			Result: call.Result{Success: true, Output: json.RawMessage(`"ok"`)},
		})
	}
	return b
}

func TestOutputsGoOutAsTheyAre(t *testing.T) {
	t.Parallel()
	for name, output := range map[string]string{
		"beyond 2^53":    `[{"type":"input_text","text":"x","n":9007199254740993}]`,
		"beyond a float": `[1e400, -0.0,1.10]`,
		"duplicate keys": `[{"a":1,"a":2}]`,
		"HTML":           `"<a&b>"`,
		"NUL":            `"\u0000"`,
		"escapes":        `"\u003c\/\ud83d\ude00"`,
		"line separator": "\"\u2028\"",
		"spaces":         "[ { \"type\" :\n\"input_text\" } ]",
		"empty string":   `""`,
		"image": `[{"type":"input_text","text":"t"},` +
			`{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, apitest.ReplyJSON(202, ""))
			b := batch("call_1")
			b.Answers[0].Result.Output = json.RawMessage(output)
			require.NoError(t, a.Submit(t.Context(), b))
			require.Equal(t, `{"events":[{"type":"agent.session.input.tool_result","turn_id":"turn_1","call_id":"call_1",`+
				`"success":true,"output":`+output+`}]}`, string(a.Asked()[0].Body))
		})
	}
}

func TestSubmitIsOneRequestForTheBatch(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(202, ""))
	b := batch("call_1", "call_2", "call_3")
	b.Answers[1].Result = call.Result{Error: "customer 456 not found"}
	b.Answers[2].Result = call.Result{Success: true}
	require.NoError(t, a.Submit(t.Context(), b))

	require.Len(t, a.Asked(), 1)
	got := a.Asked()[0]
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "/v1/agents/sessions/sess_1/events", got.URI)
	require.Equal(t, "key_1", got.Header.Get("Idempotency-Key"))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, "agents=v1", got.Header.Get("OpenAI-Beta"))
	const want = `{"events":[` +
		`{"type":"agent.session.input.tool_result","turn_id":"turn_1","call_id":"call_1","success":true,"output":"ok"},` +
		`{"type":"agent.session.input.tool_result","turn_id":"turn_1","call_id":"call_2","success":false,"error":"customer 456 not found"},` +
		`{"type":"agent.session.input.tool_result","turn_id":"turn_1","call_id":"call_3","success":true,"output":null}]}`
	require.Equal(t, want, got.Body)
}

func TestAnyTwoHundredIsAccepted(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"200 JSON":  apitest.ReplyJSON(200, `{"whatever":1}`),
		"202 empty": apitest.ReplyJSON(202, ""),
		"204":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"202 HTML":  apitest.Reply(202, "text/html", "<html>"),
		"cut body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "short")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, handler)
			require.NoError(t, a.Submit(t.Context(), batch("call_1")))
		})
	}
}

func TestARedirectIsNotAcceptance(t *testing.T) {
	t.Parallel()
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			http.Redirect(w, r, "/v1/login", http.StatusFound)
		}
	}, func(c *agents.Config) {
		c.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	})
	r := apitest.Refused(t, a.Submit(t.Context(), batch("call_1")))
	require.Equal(t, call.RefusedBusy, r.Class)
	require.Equal(t, http.StatusFound, r.Status)
	require.Len(t, a.Asked(), 1)
}

func TestAnEmptyBatchMakesNoRequest(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(202, ""))
	require.NoError(t, a.Submit(t.Context(), call.Batch{Session: "sess_1"}))
	require.Empty(t, a.Asked())
}

func TestABrokenConnectionIsReplayedOnce(t *testing.T) {
	t.Parallel()
	all := make(chan struct{})
	var warm sync.WaitGroup
	warm.Add(8)
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		warm.Done()
		<-all
		apitest.ReplyJSON(200, sessionJSON(""))(w, r)
	})
	var reads sync.WaitGroup
	for range 8 { // so that there are 8 kept connections
		reads.Go(func() { _, _ = a.Session(t.Context(), "sess_1") })
	}
	warm.Wait()
	close(all)
	reads.Wait()
	require.Equal(t, call.RefusedBusy, apitest.Refused(t, a.Submit(t.Context(), batch("call_1"))).Class)
	require.LessOrEqual(t, len(a.Asked()), 8+2)
}
