package responses_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/internal/responses"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

var streamed = json.RawMessage(`{"model":"m","stream":true}`)

func item(s string) json.RawMessage { return json.RawMessage(s) }

func TestAStreamIsToldEventByEvent(t *testing.T) {
	t.Parallel()
	a := serve(t, events(closes, created, progress, addedOne, addedTwo, argument,
		`{"type":"brand.new","sequence_number":"odd","output_index":"odd"}`,
		`{"type":"response.output_text.delta","sequence_number":4,"output_index":1,"delta":"größer <"}`,
		doneTwo, doneOne, ended, `{"type":"after.the.end"}`))
	var got told
	require.NoError(t, a.Create(t.Context(), streamed, "key_1", got.on))
	require.Equal(t, told{
		{Kind: runs.Created, Response: "resp_1", Status: "in_progress"},
		{Kind: runs.ItemAdded, Sequence: 2, Item: item(`{"id":"fc_1","type":"function_call","name":"get_weather","arguments":""}`)},
		{Kind: runs.ItemAdded, Sequence: 3, Index: 1, Item: item(`{"id":"fc_2","type":"function_call","name":"get_time","arguments":""}`)},
		{Kind: runs.TextDelta, Sequence: 4, Index: 1, Delta: "größer <"},
		{Kind: runs.ItemDone, Sequence: 5, Index: 1, Item: item(callTwo)},
		{Kind: runs.ItemDone, Sequence: 6, Index: 0, Item: item(callOne)},
		{Kind: runs.Ended, Sequence: 7, Response: "resp_1", Status: "completed", Outcome: outcome()},
	}, got)
	require.Equal(t, "text/event-stream", a.Asked()[0].Header.Get("Accept"))
}

func TestAnswersThatAreNotStreamed(t *testing.T) {
	t.Parallel()
	all := told{
		{Kind: runs.Created, Response: "resp_1", Status: "completed"},
		{Kind: runs.ItemDone, Index: 0, Item: item(callOne)},
		{Kind: runs.ItemDone, Index: 1, Item: item(callTwo)},
		{Kind: runs.Ended, Response: "resp_1", Status: "completed", Outcome: outcome()},
	}
	for name, test := range map[string]struct{ request, answer string }{
		"asked for so":              {`{"stream":false}`, whole},
		"stream is ignored":         {`{"stream":true}`, whole},
		"background is ignored":     {`{"background":true}`, whole},
		"a server without statuses": {`{}`, `{"id":"resp_1","output":[` + callOne + `,` + callTwo + `],"usage":"odd"}`},
	} {
		a := serve(t, apitest.ReplyJSON(200, test.answer))
		var got told
		require.NoError(t, a.Create(t.Context(), item(test.request), "", got.on), name)
		require.Equal(t, all, got, name)
		require.NotContains(t, a.Asked()[0].Header, "Idempotency-Key")
	}
}

func TestABackgroundResponseHasBegun(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"queued", "in_progress"} {
		a := serve(t, apitest.ReplyJSON(200, `{"id":"resp_1","status":"`+status+`","output":[]}`))
		var got told
		require.NoError(t, a.Create(t.Context(), item(`{"background":true}`), "", got.on))
		require.Equal(t, told{{Kind: runs.Created, Response: "resp_1", Status: status}}, got)
	}
}

func TestEndsOfResponses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		frame, object string
		want          runs.Outcome
	}{
		"incomplete": {
			"response.incomplete", `{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`,
			runs.Outcome{Status: "incomplete", Reason: "max_output_tokens", Output: []json.RawMessage{}},
		},
		"failed": {
			"response.failed", `{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"sorry"},"output":[]}`,
			runs.Outcome{Status: "failed", Reason: "server_error", Error: "sorry", Output: []json.RawMessage{}},
		},
		"cancelled": {
			"response.cancelled", `{"id":"resp_1","status":"cancelled","incomplete_details":null,"error":null}`,
			runs.Outcome{Status: "cancelled"},
		},
	} {
		for _, handler := range []http.HandlerFunc{
			events(stays, created, `{"type":"`+test.frame+`","sequence_number":9,"response":`+test.object+`}`),
			apitest.ReplyJSON(200, test.object),
		} {
			a := serve(t, handler)
			var got told
			require.NoError(t, a.Create(t.Context(), streamed, "", got.on), name)
			require.Equal(t, "created ended", got.kinds())
			require.Equal(t, &test.want, got[1].Outcome, name)
			require.Equal(t, test.want.Status, got[1].Status)
		}
	}
}

func TestServersThatLeaveThingsOut(t *testing.T) {
	t.Parallel()
	const (
		bareDone  = `{"type":"response.output_item.done","item":{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}}`
		bareAdded = `{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}`
		bareEnded = `{"type":"response.completed","response":{"id":"resp_1"}}`
	)
	for name, test := range map[string]struct {
		frames []string
		kinds  string
		index  []int // of the items that are done
		output int
	}{
		"only the end":      {[]string{ended}, "created item_done item_done ended", []int{0, 1}, 2},
		"one item":          {[]string{created, addedTwo, doneTwo, ended}, "created item_added item_done item_done ended", []int{1, 0}, 2},
		"no output":         {[]string{created, addedOne, doneOne, bareEnded}, "created item_added item_done ended", []int{0}, 1},
		"no numbers":        {[]string{created, bareAdded, bareDone, bareAdded, bareDone, bareEnded}, "created item_added item_done item_added item_done ended", []int{0, 1}, 2},
		"no begin":          {[]string{created, bareDone, bareDone, bareEnded}, "created item_done item_done ended", []int{0, 1}, 2},
		"ids, mixed":        {[]string{created, `{"type":"response.output_item.added","item":{"id":"fc_1"}}`, `{"type":"response.output_item.added","item":{"id":"fc_2"}}`, `{"type":"response.output_item.done","item":` + callTwo + `}`, `{"type":"response.output_item.done","item":` + callOne + `}`, ended}, "created item_added item_added item_done item_done ended", []int{1, 0}, 2},
		"begun by progress": {[]string{progress, ended}, "created item_done item_done ended", []int{0, 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, events(stays, test.frames...))
			var got told
			require.NoError(t, a.Create(t.Context(), streamed, "", got.on))
			require.Equal(t, test.kinds, got.kinds())
			var index []int
			for _, event := range got {
				if event.Kind == runs.ItemDone {
					index = append(index, event.Index)
				}
			}
			require.Equal(t, test.index, index)
			require.Len(t, got[len(got)-1].Outcome.Output, test.output)
		})
	}
}

func TestStreamsThatEndTooEarly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		kinds   string
		class   call.RefusalClass
		code    string
		about   string
	}{
		"closed":               {events(closes, created, addedOne), "created item_added", call.RefusedBusy, "", "before the response did"},
		"[DONE]":               {events(stays, created, "[DONE]"), "created", call.RefusedBusy, "", "before the response did"},
		"cut":                  {events(cuts, created), "created", call.RefusedBusy, "", "cut"},
		"cut in mid frame":     {events(cuts, created, `{"type":"resp`), "created", call.RefusedBusy, "", ""},
		"empty":                {events(closes), "", call.RefusedBusy, "", ""},
		"not JSON":             {events(stays, "{oops"), "", call.RefusedBusy, "", "a frame of the stream"},
		"another response":     {events(stays, created, `{"type":"response.completed","response":{"id":"resp_2"}}`), "created", call.RefusedBusy, "", "resp_2"},
		"error, flat":          {events(stays, created, `{"type":"error","code":"server_error","message":"sorry","param":null,"sequence_number":3}`), "created", call.RefusedBusy, "server_error", "sorry"},
		"error, nested":        {events(stays, created, `{"type":"error","error":{"type":"server_error","code":null,"message":"sorry"}}`), "created", call.RefusedBusy, "", "sorry"},
		"error without a type": {events(stays, `{"error":{"code":"rate_limit_exceeded","message":"slow down"}}`), "", call.RefusedBusy, "rate_limit_exceeded", "slow down"},
		"error, invalid":       {events(stays, created, `{"type":"error","error":{"type":"invalid_request_error","code":"x","message":"no"}}`), "created", call.RefusedInvalid, "x", "no"},
		"error, too long":      {events(stays, created, `{"type":"error","code":"context_length_exceeded","message":"no"}`), "created", call.RefusedInvalid, "context_length_exceeded", "no"},
		"error, auth":          {events(stays, `{"type":"error","error":{"code":"invalid_api_key","message":"`+apitest.Secret+`"}}`), "", call.RefusedAuth, "invalid_api_key", "[API key]"},
		"error, empty":         {events(stays, `{"type":"error"}`), "", call.RefusedBusy, "", "reported an error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := serve(t, test.handler)
			var got told
			r := apitest.Refused(t, a.Create(t.Context(), streamed, "", got.on))
			require.Equal(t, test.kinds, got.kinds())
			require.Equal(t, test.class, r.Class, r.Error())
			require.Equal(t, test.code, r.Code)
			require.Equal(t, "req_1", r.RequestID)
			require.ErrorContains(t, r, test.about)
		})
	}
}

func TestASilentAnswerIsBusy(t *testing.T) {
	t.Parallel()
	impatient := func(c *responses.Config) { c.Idle, c.Timeout = 50*time.Millisecond, 10*time.Second }
	for name, test := range map[string]struct {
		request string
		handler http.HandlerFunc
		about   string
	}{
		"stream":    {`{"stream":true}`, events(stays, created), "silent"},
		"no answer": {`{}`, func(_ http.ResponseWriter, r *http.Request) { stays(r) }, "no answer in time"},
		"half an answer": {`{}`, func(w http.ResponseWriter, r *http.Request) {
			apitest.ReplyJSON(200, `{"id":`)(w, r)
			_ = http.NewResponseController(w).Flush()
			stays(r)
		}, "silent"},
	} {
		a := serve(t, test.handler, impatient)
		var got told
		r := apitest.Refused(t, a.Create(t.Context(), item(test.request), "", got.on))
		require.Equal(t, call.RefusedBusy, r.Class, name)
		require.ErrorContains(t, r, test.about, name)
		require.NotErrorIs(t, r, context.Canceled)
	}
}

func TestSignsOfLifeKeepAStream(t *testing.T) {
	t.Parallel()
	const idle = 400 * time.Millisecond
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(closes, created)(w, r)
		for range 8 { // more than the idle limit, and more than the time of a request
			select {
			case <-r.Context().Done():
				return
			case <-time.After(idle / 4):
			}
			_, _ = io.WriteString(w, ": heartbeat\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "data: "+ended+"\n\n")
	}, func(c *responses.Config) { c.Idle, c.Timeout = idle, idle })
	var got told
	require.NoError(t, a.Create(t.Context(), streamed, "", got.on))
	require.Equal(t, "created item_done item_done ended", got.kinds())
}

func TestTheCallersOwnTimeIsNotSilence(t *testing.T) {
	t.Parallel()
	const idle = 100 * time.Millisecond
	a := serve(t, events(closes, created, ended), func(c *responses.Config) { c.Idle = idle })
	var got told
	require.NoError(t, a.Create(t.Context(), streamed, "", func(e runs.Event) error {
		if e.Kind == runs.Created {
			<-time.After(3 * idle)
		}
		return got.on(e)
	}))
	require.Equal(t, "created item_done item_done ended", got.kinds())
}

func TestTheCallersErrorIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	gone := make(chan struct{}, 2)
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(stays, created)(w, r)
		gone <- struct{}{}
	})
	for _, follow := range []func(func(runs.Event) error) error{
		func(on func(runs.Event) error) error { return a.Create(t.Context(), streamed, "", on) },
		func(on func(runs.Event) error) error { return a.Retrieve(t.Context(), "resp_1", 0, true, on) },
	} {
		err := follow(func(runs.Event) error { return own })
		require.Equal(t, own, err) // not one that wraps it
		select {
		case <-gone:
		case <-time.After(5 * time.Second):
			require.Fail(t, "the connection was not closed")
		}
	}
}

func TestACancelledCallerIsToldSo(t *testing.T) {
	t.Parallel()
	a := serve(t, events(stays, created))
	ctx, cancel := context.WithCancel(t.Context())
	err := a.Create(ctx, streamed, "", func(runs.Event) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
}

func TestRetrieveGivesTheState(t *testing.T) {
	t.Parallel()
	a := serve(t, apitest.ReplyJSON(200, whole))
	var got told
	require.NoError(t, a.Retrieve(t.Context(), "resp_1", 5, false, got.on))
	require.Equal(t, told{{Kind: runs.Ended, Response: "resp_1", Status: "completed", Outcome: outcome()}}, got)
	require.Equal(t, "/v1/responses/resp_1", a.Asked()[0].URI)
	require.Empty(t, a.Asked()[0].Body)

	a = serve(t, apitest.ReplyJSON(200, `{"id":"resp_1","status":"in_progress"}`))
	got = nil
	require.NoError(t, a.Retrieve(t.Context(), "resp_1", 5, false, got.on))
	require.Equal(t, told{{Kind: runs.Created, Response: "resp_1", Status: "in_progress"}}, got)

	for name, test := range map[string]struct {
		handler http.HandlerFunc
		class   call.RefusalClass
	}{
		"gone":             {apitest.ReplyJSON(404, envelope("not_found_error", "Response with id 'resp_1' not found.", "")), call.RefusedGone},
		"another response": {apitest.ReplyJSON(200, `{"id":"resp_2","status":"completed"}`), call.RefusedBusy},
		"500":              {apitest.ReplyJSON(500, envelope("server_error", "no", "")), call.RefusedBusy},
	} {
		for _, stream := range []bool{false, true} {
			a := serve(t, test.handler)
			r := apitest.Refused(t, a.Retrieve(t.Context(), "resp_1", 0, stream, got.on))
			require.Equal(t, test.class, r.Class, name)
			require.Len(t, a.Asked(), 1)
		}
	}
}

func TestRetrieveResumesAStream(t *testing.T) {
	t.Parallel()
	a := serve(t, events(stays, doneOne, ended))
	var got told
	require.NoError(t, a.Retrieve(t.Context(), "resp_1", 5, true, got.on))
	require.Equal(t, told{
		{Kind: runs.ItemDone, Sequence: 6, Item: item(callOne)},
		{Kind: runs.Ended, Sequence: 7, Response: "resp_1", Status: "completed", Outcome: outcome()},
	}, got)
	require.Equal(t, "/v1/responses/resp_1?include_obfuscation=false&starting_after=5&stream=true", a.Asked()[0].URI)
	require.Equal(t, "text/event-stream", a.Asked()[0].Header.Get("Accept"))
	require.Empty(t, a.Asked()[0].Body)

	require.NoError(t, a.Retrieve(t.Context(), "resp_1", 0, true, got.on))
	require.NotContains(t, a.Asked()[1].URI, "starting_after")
}

func TestRetrieveWithoutStreams(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"the service has none": apitest.ReplyJSON(200, whole),
		"it does not say the end": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("stream") == "true" {
				events(closes, progress)(w, r)
				return
			}
			apitest.ReplyJSON(200, whole)(w, r)
		},
		"not of this response": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("stream") == "true" {
				apitest.ReplyJSON(400, envelope("", "This response cannot be streamed because it was not created with background=true.", "stream"))(w, r)
				return
			}
			apitest.ReplyJSON(200, whole)(w, r)
		},
	} {
		a := serve(t, handler)
		var got told
		require.NoError(t, a.Retrieve(t.Context(), "resp_1", 3, true, got.on), name)
		require.Equal(t, "ended", strings.TrimPrefix(got.kinds(), "created "), name)
	}
}

func TestItemsAreThoseThatWereDone(t *testing.T) {
	t.Parallel()
	const (
		done  = `{"id":"rs_1","type":"reasoning","encrypted_content":"whole"}`
		shown = `{"id":"rs_1","type":"reasoning","encrypted_content":null}`
		other = `{"id":"fc_9","type":"function_call"}`
	)
	a := serve(t, events(stays, created,
		`{"type":"response.output_item.done","output_index":0,"item":`+done+`}`,
		`{"type":"response.output_item.done","output_index":1,"item":`+callTwo+`}`,
		`{"type":"response.completed","response":{"id":"resp_1","output":[`+shown+`,`+other+`]}}`))
	var got told
	require.NoError(t, a.Create(t.Context(), streamed, "", got.on))
	require.Equal(t, []json.RawMessage{item(done), item(other)}, got[3].Outcome.Output)
}

func TestLargeItems(t *testing.T) {
	t.Parallel()
	large := fmt.Sprintf(`{"type":"message","id":"msg_1","text":"%0*d"}`, 4<<20, 7)
	a := serve(t, events(stays, created, `{"type":"response.output_item.done","output_index":0,"item":`+large+`}`,
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[`+large+`]}}`))
	var got told
	require.NoError(t, a.Create(t.Context(), streamed, "", got.on))
	require.Equal(t, large, string(got[1].Item))
	require.Equal(t, large, string(got[2].Outcome.Output[0]))
}
