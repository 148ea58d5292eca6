package ops_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/ops/opsclient"
	"github.com/callfan/callfan/pkg/call"
)

// decisions stands for a dispatcher that takes decisions.
type decisions struct {
	decided map[call.Key]ops.Decision
	refusal error
}

func (d *decisions) Decide(_ context.Context, key call.Key, decision ops.Decision) error {
	if d.decided == nil {
		d.decided = map[call.Key]ops.Decision{}
	}
	d.decided[key] = decision
	return d.refusal
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	key := call.Key{Session: "s", Turn: "turn/1", Call: "call 1"}
	path := "/v1/calls/" + key.String() + "/decision"
	for body, want := range map[string]ops.Decision{
		`{"rerun":true}`: {Rerun: true},
		`{ "output" : "a \u003c <b>\ud83d\ude00"  , "by":"mary m"}`:    {Output: []byte(`"a \u003c <b>\ud83d\ude00"`), By: "mary m"},
		`{"output_json":  [ {"type":"input_text", "text":"<1e2>"} ] }`: {OutputJSON: []byte(`[ {"type":"input_text", "text":"<1e2>"} ]`)},
		`{"output_json":"text"}`:               {OutputJSON: []byte(`"text"`)},
		`{"output":""}`:                        {Output: []byte(`""`)},
		`{"error":"out of \"stock\"","by":""}`: {Error: `out of "stock"`},
	} {
		status, answer := b.do(t, http.MethodPost, path, body, asked, json)
		require.Equal(t, 202, status, answer)
		require.Empty(t, answer)
		require.Equal(t, want, b.admin.decided[key], "byte for byte")
		delete(b.admin.decided, key)
		require.NoError(t, b.client(t, "").Decide(t.Context(), key, want))
		require.Equal(t, want, b.admin.decided[key], "the client sends the same bytes")
		delete(b.admin.decided, key)
	}
	large := ops.Decision{Output: []byte(`"` + strings.Repeat("a", 4<<20) + `"`)}
	require.NoError(t, b.client(t, "").Decide(t.Context(), key, large), "as large as a result may be")
	require.Equal(t, call.Result{Success: true, Output: large.Output, Reason: call.ReasonOperator}, b.admin.decided[key].Result())
	require.Equal(t, call.Result{Error: "no", Reason: call.ReasonOperator}, ops.Decision{Error: "no"}.Result())
	require.Equal(t, `"x"`, string(ops.Decision{OutputJSON: []byte(`"x"`)}.Result().Output))
	delete(b.admin.decided, key)

	for body, want := range map[string]string{
		`{}`:                              "0 decisions; give exactly one of",
		`{"rerun":false}`:                 "0 decisions",
		`{"error":""}`:                    "0 decisions",
		`{"rerun":true,"error":"x"}`:      "2 decisions",
		`{"output":"a","output_json":[]}`: "2 decisions",
		`{"output":null}`:                 "is no string",
		`{"output":["a"]}`:                `content array as \"output_json\"`,
		`{"output_json":{"a":1}}`:         "neither a JSON string nor an array",
		`{"error":"a","by":"a\nb"}`:       "is no name",
		`{"error":"a","by":"` + strings.Repeat("a", ops.MaxBy+1) + `"}`: "is no name",
		`{"outptu":"a"}`: `unknown field \"outptu\"`,
		`rerun`:          `want a body like {\"rerun\":true,\"by\":\"me\"}`,
	} {
		status, answer := b.do(t, http.MethodPost, path, body, asked, json)
		require.Equal(t, 400, status, body)
		require.Contains(t, answer, want, body)
	}
	status, _ := b.do(t, http.MethodPost, path, `{"output":"`+strings.Repeat("a", 6<<20)+`"}`, asked, json)
	require.Equal(t, 413, status)
	require.Empty(t, b.admin.decided)
}

func TestDecisionsThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	b := setup(t, ops.Config{})
	key := call.Key{Session: "s", Turn: "t", Call: "c"}
	for _, tt := range []struct {
		refusal error
		status  int
		code    string
		remedy  string
	}{
		{dispatcher.ErrNoCall, 404, "unknown_call", "calls list --state parked"},
		{dispatcher.ErrAnswered, 409, "answered", "callfan calls show s/t/c"},
		{dispatcher.ErrNotParked, 409, "not_parked", "callfan calls show s/t/c"},
		{dispatcher.ErrUnusable, 400, "invalid_decision", "cannot be submitted"},
		{ops.ErrNotStarted, 503, "not_started", "readyz"},
		{errMissing, 503, "unavailable", "missing"},
	} {
		b.admin.refusal = fmt.Errorf("%w, it says", tt.refusal)
		err := b.client(t, "").Decide(t.Context(), key, ops.Decision{Rerun: true})
		var refused *opsclient.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, tt.status, refused.Status)
		require.Equal(t, tt.code, refused.Code)
		require.ErrorContains(t, refused, tt.refusal.Error()+", it says", "the cause")
		require.ErrorContains(t, refused, tt.remedy)
	}
}
