package responses_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/internal/responses"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/call"
)

// simulated is a client of a simulator.
type simulated struct {
	*responses.Client

	url string
}

func simulate(t *testing.T, cfg simulator.Config) *simulated {
	t.Helper()
	sim, err := simulator.New(cfg)
	require.NoError(t, err)
	server := httptest.NewServer(sim.Handler())
	var config responses.Config
	config.BaseURL = server.URL + "/v1"
	client, err := responses.New(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		sim.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return &simulated{client, config.BaseURL}
}

// asks is a request for a response; input and members are JSON.
func asks(input, members string) json.RawMessage {
	const tools = `[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"function","name":"g","parameters":{"type":"object"}}]`
	return json.RawMessage(`{"model":"gpt-6-astra","tools":` + tools + `,"input":` + input + members + `}`)
}

const parallel = `{"rounds":[[{"name":"f","arguments":{"n":9007199254740993,"t":"größer <"}},{"name":"g"}]],"say":"all done","say_results":true}`

// seen is what a response said, whatever way it was followed.
type seen struct {
	told

	response string
	after    int64
	done     map[int]string
	outcome  *runs.Outcome
}

func (s *seen) on(e runs.Event) error {
	s.told = append(s.told, e)
	s.after = max(s.after, e.Sequence)
	switch e.Kind {
	case runs.Created:
		s.response = e.Response
	case runs.ItemDone:
		if s.done == nil {
			s.done = map[int]string{}
		}
		s.done[e.Index] = string(e.Item)
	case runs.Ended:
		s.outcome = e.Outcome
	}
	return nil
}

// output is what the outcome shows, after a check that it is what was told.
func (s *seen) output(t *testing.T, followed bool) []map[string]any {
	t.Helper()
	require.NotNil(t, s.outcome)
	var items []map[string]any
	for i, raw := range s.outcome.Output {
		var item map[string]any
		require.NoError(t, json.Unmarshal(raw, &item))
		items = append(items, item)
		if followed {
			require.Equal(t, string(raw), s.done[i])
		}
	}
	return items
}

func outputsOf(items []map[string]any) string {
	var list []string
	for _, item := range items {
		if item["type"] == "function_call" {
			list = append(list, `{"type":"function_call_output","call_id":"`+item["call_id"].(string)+`","output":"\"result of `+item["name"].(string)+`\""}`)
		}
	}
	return "[" + strings.Join(list, ",") + "]"
}

// TestTwoRounds asks for parallel calls and answers them, in every way to follow a response.
func TestTwoRounds(t *testing.T) {
	t.Parallel()
	s := simulate(t, simulator.Config{StreamDelay: time.Millisecond})
	for name, members := range map[string]string{
		"whole": "", "stream": `,"stream":true`, "background": `,"background":true`, "background stream": `,"background":true,"stream":true`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow := func(body json.RawMessage) *seen {
				var got seen
				require.NoError(t, s.Create(t.Context(), body, "key_"+name, got.on))
				require.Equal(t, runs.Created, got.told[0].Kind)
				require.Eventually(t, func() bool {
					if got.outcome == nil {
						require.NoError(t, s.Retrieve(t.Context(), got.response, got.after, false, got.on))
					}
					return got.outcome != nil
				}, 10*time.Second, 5*time.Millisecond)
				require.Equal(t, "completed", got.outcome.Status)
				return &got
			}
			first := follow(asks(quoted(parallel), members))
			items := first.output(t, members != `,"background":true`)
			require.Contains(t, string(first.outcome.Output[len(items)-2]), `9007199254740993`)
			outputs := outputsOf(items)
			require.Equal(t, 2, strings.Count(outputs, "function_call_output"))
			if strings.Contains(members, "stream") {
				require.Contains(t, first.kinds(), "item_added")
			}

			second := follow(asks(outputs, `,"previous_response_id":"`+first.response+`"`+members))
			answer := second.output(t, members != `,"background":true`)
			require.Equal(t, "message", answer[len(answer)-1]["type"])
			if strings.Contains(members, "stream") {
				var text strings.Builder
				for _, event := range second.told {
					text.WriteString(event.Delta)
				}
				require.Contains(t, text.String(), "all done")
			}
		})
	}
}

// TestStreamsAreResumed cuts the stream of a response at every frame, and goes on from there.
func TestStreamsAreResumed(t *testing.T) {
	t.Parallel()
	body := asks(quoted(parallel), `,"background":true,"stream":true`)
	for _, kind := range []simulator.FaultKind{simulator.FaultStreamCut, simulator.FaultStreamError} {
		for skip := 0; ; skip++ {
			s := simulate(t, simulator.Config{Faults: simulator.Faults{Rules: []simulator.FaultRule{
				{Kind: kind, Endpoint: simulator.EndpointResponseStream, Skip: skip, Next: 1},
			}}})
			var got seen
			err := s.Create(t.Context(), body, "key_1", got.on)
			if err == nil {
				require.Greater(t, skip, 10)
				break
			}
			require.Equal(t, call.RefusedBusy, apitest.Refused(t, err).Class)
			if skip == 0 {
				require.Empty(t, got.response, "nothing is known of it")
				continue
			}
			require.NoError(t, s.Retrieve(t.Context(), got.response, got.after, true, got.on))
			require.Len(t, got.output(t, true), len(slices.Collect(maps.Keys(got.done))))
			ended := got.told[len(got.told)-1]
			require.Equal(t, runs.Ended, ended.Kind)
			last := int64(0)
			for _, event := range got.told[1:] {
				if event.Kind == runs.Created { // a resumption from the very start
					continue
				}
				require.Greater(t, event.Sequence, last, "no event comes twice")
				last = event.Sequence
			}
		}
	}
}

func TestEndsOfTheSimulatorsResponses(t *testing.T) {
	t.Parallel()
	s := simulate(t, simulator.Config{})
	for script, want := range map[string]runs.Outcome{
		`{"say":"x","fail":"server_error"}`:            {Status: "failed", Reason: "server_error"},
		`{"say":"x","incomplete":"max_output_tokens"}`: {Status: "incomplete", Reason: "max_output_tokens"},
		`{"say":"","refuse":"I will not do that."}`:    {Status: "completed"},
	} {
		for _, members := range []string{"", `,"stream":true`} {
			var got seen
			require.NoError(t, s.Create(t.Context(), asks(quoted(script), members), "", got.on))
			require.Equal(t, want.Status, got.outcome.Status)
			require.Equal(t, want.Reason, got.outcome.Reason)
			require.Equal(t, want.Status == "failed", got.outcome.Error != "")
		}
	}
}

func TestTheSimulatorsRefusals(t *testing.T) {
	t.Parallel()
	s := simulate(t, simulator.Config{})
	var made seen
	require.NoError(t, s.Create(t.Context(), asks(quoted(parallel), ""), "", made.on))
	outputs := outputsOf(made.output(t, true))
	one := outputs[:strings.Index(outputs, "},{")+1] + "]"
	left, _, _ := strings.Cut(strings.Split(outputs, `"call_id":"`)[2], `"`)
	for name, test := range map[string]struct {
		body                json.RawMessage
		code, param, callID string
	}{
		"missing output":    {asks(one, `,"previous_response_id":"`+made.response+`"`), "", "input", left},
		"unknown call":      {asks(`[{"type":"function_call_output","call_id":"call_x","output":"1"}]`, ""), "", "input", "call_x"},
		"previous response": {asks(`"hi"`, `,"previous_response_id":"resp_x"`), "previous_response_not_found", "previous_response_id", ""},
		"no model":          {json.RawMessage(`{"input":"hi"}`), "missing_required_parameter", "model", ""},
		"no JSON":           {json.RawMessage(`{`), "", "", ""},
		"no conversation":   {asks(`"hi"`, `,"conversation":"conv_x"`), "", "", ""},
	} {
		for _, stream := range []bool{false, true} {
			body := test.body
			if stream {
				body = json.RawMessage(strings.Replace(string(body), "{", `{"stream":true,`, 1))
			}
			var got seen
			r := apitest.Refused(t, s.Create(t.Context(), body, "", got.on))
			require.Equal(t, call.RefusedInvalid, r.Class, "%s: %v", name, r)
			require.Equal(t, test.callID, r.CallID, name)
			if test.param != "" {
				require.Equal(t, test.code, r.Code, name)
				require.Equal(t, test.param, r.Param, name)
			}
			require.NotEmpty(t, r.RequestID)
			require.Empty(t, got.told)
		}
	}
	var got seen
	for _, stream := range []bool{false, true} {
		require.Equal(t, call.RefusedGone, apitest.Refused(t, s.Retrieve(t.Context(), "resp_x", 0, stream, got.on)).Class)
	}
	_, err := s.Items(t.Context(), "conv_x")
	require.Equal(t, call.RefusedGone, apitest.Refused(t, err).Class)
	require.NoError(t, s.Cancel(t.Context(), "resp_x"))
}

func TestCancelInTheSimulator(t *testing.T) {
	t.Parallel()
	s := simulate(t, simulator.Config{ModelDelay: time.Minute})
	for _, members := range []string{`,"background":true`, `,"background":true,"stream":true`} {
		var got seen
		ctx, leave := context.WithCancel(t.Context())
		err := s.Create(ctx, asks(`"hi"`, members), "", func(e runs.Event) error { leave(); return got.on(e) })
		leave()
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.NoError(t, s.Cancel(t.Context(), got.response))
		require.NoError(t, s.Cancel(t.Context(), got.response))
		for _, stream := range []bool{false, true} {
			got.outcome = nil
			require.NoError(t, s.Retrieve(t.Context(), got.response, got.after, stream, got.on))
			require.Equal(t, "cancelled", got.outcome.Status)
		}
	}
	var got seen
	quick := simulate(t, simulator.Config{})
	require.NoError(t, quick.Create(t.Context(), asks(`"hi"`, ""), "", got.on))
	require.NoError(t, quick.Cancel(t.Context(), got.response), "not made in the background")
}

func TestFaultsOfTheSimulator(t *testing.T) {
	t.Parallel()
	for kind, status := range map[simulator.FaultKind]int{
		simulator.FaultRateLimited: 429, simulator.FaultInternalError: 500, simulator.FaultUnavailable: 503,
		simulator.FaultBadGateway: 502, simulator.FaultResponseLost: 0,
	} {
		s := simulate(t, simulator.Config{Faults: simulator.Faults{Rules: []simulator.FaultRule{
			{Kind: kind, Endpoint: simulator.EndpointResponseCreate, Next: 1},
		}}})
		var got seen
		r := apitest.Refused(t, s.Create(t.Context(), asks(`"hi"`, `,"stream":true`), "key_1", got.on))
		require.Equal(t, call.RefusedBusy, r.Class, kind)
		require.Equal(t, status, r.Status, kind)
		require.NoError(t, s.Create(t.Context(), asks(`"hi"`, `,"stream":true`), "key_1", got.on))
		require.Equal(t, "completed", got.outcome.Status)
	}
}

func TestItemsOfTheSimulatorsConversation(t *testing.T) {
	t.Parallel()
	s := simulate(t, simulator.Config{})
	conversation := s.converse(t)
	var got seen
	require.NoError(t, s.Create(t.Context(), asks(quoted(parallel), `,"conversation":"`+conversation+`"`), "", got.on))
	items, err := s.Items(t.Context(), conversation)
	require.NoError(t, err)
	output := got.outcome.Output
	slices.Reverse(output)
	require.Equal(t, output, items[:len(output)], "the newest come first")
	require.Contains(t, string(items[len(items)-1]), `"user"`)
}

// converse makes a conversation.
func (s *simulated) converse(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/conversations", strings.NewReader(`{}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer any")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal(body, &made), string(body))
	return made.ID
}
