package simulator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

func oneCall(name string) []map[string]any {
	return []map[string]any{{"name": name, "arguments": map[string]any{}}}
}

func TestUnknownProfile(t *testing.T) {
	t.Parallel()
	_, err := simulator.New(simulator.Config{Profile: "azure"})
	require.EqualError(t, err, `simulator: unknown profile "azure": use one of ["openai" "openagentcore"]`)
	p, err := simulator.ParseProfile("")
	require.NoError(t, err)
	require.Equal(t, simulator.ProfileOpenAI, p)
	_, err = simulator.New(simulator.Config{Switches: &simulator.Switches{}})
	require.ErrorContains(t, err, "Switches.CreateStatus is 0: use one of [200 201]")
}

func TestRepeatedResults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name           string
		identical      int
		different      int
		wantIdentical  int
		wantDifferent  int
		identicalCode  string
		differentCode  string
		differentWords string
	}{
		{"openai", 202, 409, 202, 409, "", "conflict_error", "The tool call already has a different result."},
		{"unknown", 400, 400, 400, 400, "invalid_request_error", "invalid_request_error", ""},
		{"conflict", 409, 409, 409, 409, "conflict_error", "conflict_error", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := start(t, with(func(sw *simulator.Switches) {
				sw.DuplicateIdentical, sw.DuplicateDifferent = tc.identical, tc.different
			}))
			id := b.create(t, script(t, "ok", oneCall("f")), "f")
			a := b.get(t, id).RequiredActions[0]
			require.NoError(t, b.post(t, id, "", success(a, "1")))
			err := b.post(t, id, "", success(a, "1"))
			if tc.wantIdentical == 202 {
				require.NoError(t, err)
			} else {
				requireAPIError(t, err, tc.wantIdentical, tc.identicalCode, "")
			}
			requireAPIError(t, b.post(t, id, "", success(a, "2")), tc.wantDifferent, tc.differentCode, tc.differentWords)
			requireAPIError(t, b.post(t, id, "", failure(a, "1")), tc.wantDifferent, tc.differentCode, "")
			st := b.sim.Stats()
			require.EqualValues(t, 1, st.ResultsAccepted)
			require.EqualValues(t, 3, st.DuplicateSubmissions)
			require.EqualValues(t, 3, st.DuplicatesByCall[id+"/"+a.TurnID+"/"+a.CallID])
		})
	}
}

func TestRepeatedResultIsAnnouncedAgain(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	id := b.create(t, script(t, "ok", oneCall("f"), oneCall("f")), "f")
	a := b.get(t, id).RequiredActions[0]
	stream := b.client.Beta.Agents.Sessions.Events.StreamStreaming(testContext(t), id)
	defer stream.Close()
	require.NoError(t, stream.Err())
	require.NoError(t, b.post(t, id, "", success(a, "1")))
	require.NoError(t, b.post(t, id, "", success(a, "1")))
	outputs := map[string]int{}
	for stream.Next() {
		if item := stream.Current().Item; item.Type == "function_call_output" {
			outputs[item.ID]++
			if outputs[item.ID] == 2 {
				return
			}
		}
	}
	t.Fatalf("the output was announced %v times: %v", outputs, stream.Err())
}

func TestUnknownCallsAndCallsOfAnotherTurn(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	id := b.create(t, script(t, "ok", oneCall("f")), "f")
	a := b.get(t, id).RequiredActions[0]
	requireAPIError(t, b.post(t, id, "", success(openai.AgentSessionRequiredActionUnion{TurnID: a.TurnID, CallID: "call_x"}, "1")),
		400, "invalid_request_error", "Unknown pending tool call: call_x")
	err := b.post(t, id, "", success(openai.AgentSessionRequiredActionUnion{TurnID: "turn_x", CallID: a.CallID}, "1"))
	requireAPIError(t, err, 400, "invalid_request_error", "")
	var apiErr *openai.Error
	require.ErrorAs(t, err, &apiErr)
	require.True(t, strings.HasPrefix(apiErr.Message, "Unknown pending tool call: exec-"))
	require.NotContains(t, apiErr.Message, a.CallID)

	quiet := start(t, simulator.Config{Profile: simulator.ProfileOpenAgentCore})
	id = quiet.create(t, script(t, "ok", oneCall("f")), "f")
	a = quiet.get(t, id).RequiredActions[0]
	a.CallID = "call_x"
	requireAPIError(t, quiet.post(t, id, "", success(a, "1")), 400, "invalid_request_error", "Unknown pending tool call.")
}

func TestBatchAtomicOrNot(t *testing.T) {
	t.Parallel()
	for _, atomic := range []bool{true, false} {
		b := start(t, with(func(sw *simulator.Switches) { sw.BatchAtomic = atomic }))
		id := b.create(t, script(t, "ok", append(oneCall("f"), oneCall("f")...)), "f")
		actions := b.get(t, id).RequiredActions
		bad := actions[1]
		bad.CallID = "call_x"
		requireAPIError(t, b.post(t, id, "", success(actions[0], "1"), success(bad, "2")), 400, "invalid_request_error",
			"Unknown pending tool call: call_x")
		if atomic {
			require.Len(t, b.get(t, id).RequiredActions, 2)
			require.Empty(t, b.sim.Stats().BatchSizes)
			// The same call twice in one POST: equal results pass, different ones refuse all.
			requireAPIError(t, b.post(t, id, "", success(actions[0], "1"), success(actions[0], "2")), 409, "conflict_error", "")
			require.Len(t, b.get(t, id).RequiredActions, 2)
			require.NoError(t, b.post(t, id, "", success(actions[0], "1"), success(actions[0], "1")))
		}
		require.Len(t, b.get(t, id).RequiredActions, 1)
		require.Equal(t, map[int]int64{1: 1}, b.sim.Stats().BatchSizes)
	}
}

func TestResultAfterCancel(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{409: "conflict_error", 400: "invalid_request_error"} {
		b := start(t, with(func(sw *simulator.Switches) { sw.ResultAfterCancel = status }))
		id := b.create(t, script(t, "ok", oneCall("f")), "f")
		a := b.get(t, id).RequiredActions[0]
		cancel := openai.AgentSessionInputParamUnion{OfParamAgentSessionInputCancel: &openai.AgentSessionInputParamAgentSessionInputCancel{}}
		require.NoError(t, b.post(t, id, "", cancel))
		require.NoError(t, b.post(t, id, "", cancel), "cancelling an idle session does nothing")
		ses := b.get(t, id)
		require.Equal(t, openai.AgentSessionStatusIdle, ses.Status)
		require.Empty(t, ses.RequiredActions)
		turn, err := b.client.Beta.Agents.Sessions.Turns.Get(testContext(t), id, a.TurnID)
		require.NoError(t, err)
		require.Equal(t, openai.TurnStatusCancelled, turn.Status)
		requireAPIError(t, b.post(t, id, "", success(a, "1")), status, code, "")
		items, err := b.client.Beta.Agents.Sessions.Items.List(testContext(t), id, openai.BetaAgentSessionItemListParams{})
		require.NoError(t, err)
		require.Len(t, items.Data, 1, "the incomplete call is not listed")
		require.EqualValues(t, 0, b.sim.Stats().Pending)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	for mode, wantDifferent := range map[string]int{"apply": 202, "ignore": 202, "conflict": 409} {
		b := start(t, with(func(sw *simulator.Switches) { sw.SameKeyOtherBody = mode }))
		id := b.create(t, script(t, "ok", append(oneCall("f"), oneCall("f")...)), "f")
		actions := b.get(t, id).RequiredActions
		require.NoError(t, b.post(t, id, "key", success(actions[0], "1")))
		require.NoError(t, b.post(t, id, "key", success(actions[0], "1")))
		require.EqualValues(t, 1, b.sim.Stats().IdempotentReplays)
		require.EqualValues(t, 0, b.sim.Stats().DuplicateSubmissions)
		err := b.post(t, id, "key", success(actions[1], "2"))
		if wantDifferent == 409 {
			requireAPIError(t, err, 409, "idempotency_conflict", "")
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, mode == "apply", b.get(t, id).Status == openai.AgentSessionStatusIdle)
		requireAPIError(t, b.post(t, id, strings.Repeat("k", 257), success(actions[1], "2")), 400, "invalid_request_error", "")
	}
}

func TestAsyncFunctions(t *testing.T) {
	t.Parallel()
	rounds := script(t, "ok", oneCall("slow"), oneCall("f"))
	b := start(t, simulator.Config{})
	id := b.create(t, rounds, "async:slow", "f")
	ses := b.get(t, id)
	require.Len(t, ses.RequiredActions, 1, "the async call is not listed and nothing waits for it")
	require.Equal(t, "f", ses.RequiredActions[0].Name)
	results, err := b.sim.Results(id)
	require.NoError(t, err)
	slow := openai.AgentSessionRequiredActionUnion{TurnID: results[0].TurnID, CallID: results[0].CallID}
	require.NoError(t, b.post(t, id, "", success(ses.RequiredActions[0], "1")))
	require.Equal(t, openai.AgentSessionStatusIdle, b.get(t, id).Status)
	require.NoError(t, b.post(t, id, "", success(slow, "late")))

	listed := start(t, with(func(sw *simulator.Switches) { sw.AsyncListed, sw.LateAsyncResult = true, 400 }))
	id = listed.create(t, rounds, "async:slow", "f")
	actions := listed.get(t, id).RequiredActions
	require.Len(t, actions, 2)
	require.NoError(t, listed.post(t, id, "", success(actions[1], "1")))
	ses = listed.get(t, id)
	require.Equal(t, openai.AgentSessionStatusIdle, ses.Status)
	require.Len(t, ses.RequiredActions, 1)
	requireAPIError(t, listed.post(t, id, "", success(actions[0], "late")), 400, "invalid_request_error",
		"Unknown pending tool call: "+actions[0].CallID)
}

func TestArgumentsAsString(t *testing.T) {
	t.Parallel()
	b := start(t, with(func(sw *simulator.Switches) { sw.ArgumentsAsString = true }))
	id := b.create(t, `{"rounds":[[{"name":"f","arguments":{"n":1e400}}]],"say":""}`, "f")
	require.Equal(t, `"{\"n\":1e400}"`, b.get(t, id).RequiredActions[0].JSON.Arguments.Raw())
}

func TestCallsAddedWhileOthersArePending(t *testing.T) {
	t.Parallel()
	added := script(t, "ok", []map[string]any{
		{"name": "f", "arguments": map[string]any{}},
		{"name": "f", "arguments": map[string]any{}},
		{"name": "late", "arguments": map[string]any{}, "after_results": 1},
	})
	for _, again := range []bool{true, false} {
		b := start(t, with(func(sw *simulator.Switches) { sw.ReemitOnAdded = again }))
		id := b.create(t, added, "f", "late")
		stream := b.client.Beta.Agents.Sessions.Events.StreamStreaming(testContext(t), id)
		defer stream.Close()
		require.NoError(t, stream.Err())
		actions := b.get(t, id).RequiredActions
		require.Len(t, actions, 2)
		require.NoError(t, b.post(t, id, "", success(actions[0], "1")))
		now := b.get(t, id).RequiredActions
		require.Len(t, now, 2)
		require.Equal(t, "late", now[1].Name)
		require.NoError(t, b.post(t, id, "", success(now[0], "1"), success(now[1], "1")))
		seen := strings.Join(eventTypes(stream, "agent.session.idle"), " ")
		require.NoError(t, stream.Err())
		require.Equal(t, again, strings.Contains(seen, "requires_action"))
	}
	b := start(t, simulator.Config{})
	id := b.create(t, script(t, "ok", []map[string]any{{"name": "f"}, {"name": "late", "after_ms": 5}}), "f", "late")
	require.Eventually(t, func() bool { return len(b.get(t, id).RequiredActions) == 2 }, 20*time.Second, 5*time.Millisecond)
}

func TestForcedCallIDListedTwice(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	id := b.create(t, `{"rounds":[[{"name":"f","call_id":"call_same","arguments":{}},{"name":"f","call_id":"call_same","arguments":{}}]],"say":"ok"}`, "f")
	actions := b.get(t, id).RequiredActions
	require.Len(t, actions, 2)
	require.Equal(t, "call_same", actions[0].CallID)
	require.Equal(t, "call_same", actions[1].CallID)
	require.EqualValues(t, 1, b.sim.Stats().Calls)
	require.NoError(t, b.post(t, id, "", success(actions[0], "1")))
	require.Equal(t, openai.AgentSessionStatusIdle, b.get(t, id).Status)
}

func TestStreamsOfAWaitingSession(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		snapshot, requires bool
		want               []string
	}{
		{true, false, []string{"agent.session.turn.item.added", "agent.session.turn.item.added"}},
		{true, true, []string{"agent.session.turn.item.added", "agent.session.turn.item.added", "agent.session.requires_action"}},
		{false, false, nil},
	} {
		b := start(t, with(func(sw *simulator.Switches) {
			sw.SnapshotOnSubscribe, sw.RequiresActionOnSubscribe = tc.snapshot, tc.requires
		}))
		id := b.create(t, script(t, "ok", oneCall("f")), "f")
		stream := b.client.Beta.Agents.Sessions.Events.StreamStreaming(testContext(t), id)
		defer stream.Close()
		require.NoError(t, stream.Err())
		cancel := openai.AgentSessionInputParamUnion{OfParamAgentSessionInputCancel: &openai.AgentSessionInputParamAgentSessionInputCancel{}}
		require.NoError(t, b.post(t, id, "", cancel))
		want := append(tc.want, "agent.session.turn.cancelled", "agent.session.idle")
		require.Equal(t, want, eventTypes(stream, "agent.session.idle"))
	}
}

func TestStatusCodesLimitsAndFraming(t *testing.T) {
	t.Parallel()
	b := start(t, with(func(sw *simulator.Switches) {
		sw.CreateStatus, sw.EventsStatus, sw.MaxResultBytes, sw.MaxEventsPerPost, sw.MinEventsPerPost = 200, 204, 100, 2, 1
		sw.SendDone, sw.ListUnfinishedItems, sw.Heartbeat = true, true, 5*time.Millisecond
	}))
	body := `{"agent":{"model":"m"},"environment":{"type":"none"},"input":"hello","stream":true}`
	status, answer, header := b.raw(t, http.MethodPost, "/v1/agents/sessions", body, nil)
	require.Equal(t, 200, status)
	require.Equal(t, "text/event-stream; charset=utf-8", header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(answer, `data: {"type":"agent.session.created","event_id":"evt_`))
	require.True(t, strings.HasSuffix(answer, "data: [DONE]\n\n"))
	require.Contains(t, answer, `"obfuscation":"`)
	require.NotContains(t, answer, "\nid:")
	_, answer, _ = b.raw(t, http.MethodPost, "/v1/agents/sessions",
		strings.Replace(body, `"stream":true`, `"stream":true,"stream_options":{"include_obfuscation":false}`, 1), nil)
	require.NotContains(t, answer, "obfuscation")

	id := b.create(t, script(t, "ok", oneCall("f")), "f")
	a := b.get(t, id).RequiredActions[0]
	items, err := b.client.Beta.Agents.Sessions.Items.List(testContext(t), id, openai.BetaAgentSessionItemListParams{})
	require.NoError(t, err)
	require.Len(t, items.Data, 2)
	path := "/v1/agents/sessions/" + id + "/events"
	status, _, _ = b.raw(t, http.MethodPost, path, `{"events":[]}`, nil)
	require.Equal(t, 400, status)
	requireAPIError(t, b.post(t, id, "", success(a, "1"), success(a, "1"), success(a, "1")), 400, "invalid_request_error",
		"events has 3 entries; at most 2 are allowed.")
	requireAPIError(t, b.post(t, id, "", success(a, strings.Repeat("x", 100))), 400, "invalid_request_error",
		"events[0] is too large: a tool result has at most 100 bytes.")
	status, _, _ = b.raw(t, http.MethodPost, path,
		`{"events":[{"type":"agent.session.input.tool_result","turn_id":"`+a.TurnID+`","call_id":"`+a.CallID+`","success":true,"output":null}]}`, nil)
	require.Equal(t, 204, status)

	core := start(t, simulator.Config{Profile: simulator.ProfileOpenAgentCore})
	status, _, _ = core.raw(t, http.MethodPost, "/v1/agents/sessions", strings.Repeat(" ", 1<<20)+body, nil)
	require.Equal(t, 413, status)
	status, _, _ = core.raw(t, http.MethodPost, "/v1/agents/sessions",
		strings.Replace(body, "hello", strings.Repeat("x", 600<<10), 1), nil)
	require.Equal(t, 400, status)
}

func TestSlowReaderAndHeartbeat(t *testing.T) {
	t.Parallel()
	b := start(t, with(func(sw *simulator.Switches) { sw.StreamQueueFrames, sw.SlowReaderError = 3, true }))
	calls := make([]map[string]any, 20)
	for i := range calls {
		calls[i] = map[string]any{"name": "f"}
	}
	stream := b.client.Beta.Agents.Sessions.NewStreaming(testContext(t), sessionParams(script(t, "ok", calls), "f"))
	defer stream.Close()
	for stream.Next() {
	}
	require.ErrorContains(t, stream.Err(), "stream_interrupted")

	beating := start(t, with(func(sw *simulator.Switches) { sw.Heartbeat = time.Millisecond }))
	id := beating.create(t, "hello")
	req, err := http.NewRequestWithContext(testContext(t), http.MethodGet, beating.url+"/v1/agents/sessions/"+id+"/events", nil)
	require.NoError(t, err)
	req.Header.Set("OpenAI-Beta", "agents=v1")
	req.Header.Set("Authorization", "Bearer k")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	line := make([]byte, 14)
	_, err = resp.Body.Read(line)
	require.NoError(t, err)
	require.Equal(t, ": keep-alive\n\n", string(line))
}

func TestAdmissionAndThinkingTime(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{AdmissionDelay: 100 * time.Millisecond, ModelDelay: 10 * time.Millisecond})
	id := b.create(t, script(t, "ok", oneCall("f")), "f")
	message := openai.AgentSessionInputParamOfParamAgentSessionInputMessage([]openai.AgentSessionInputMessageParam{
		{Content: []openai.InputContentParamUnion{openai.InputContentParamOfParamInputText("hello")}},
	})
	requireAPIError(t, b.post(t, id, "", message), 409, "conflict_error", "session initial input is still pending")
	_, err := b.client.Beta.Agents.Sessions.Delete(testContext(t), id)
	requireAPIError(t, err, 409, "conflict_error", "session must be durably idle or failed without required actions before deletion")
	require.Eventually(t, func() bool { return len(b.get(t, id).RequiredActions) == 1 }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, b.post(t, id, "", message), "input during a turn is queued")
	text, _ := b.answerAll(t, id, func(string, string) string { return "1" })
	require.NotEmpty(t, text)
	require.Eventually(t, func() bool { return b.sim.Stats().TurnsCompleted == 2 }, 20*time.Second, 5*time.Millisecond)
}
