package simulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

func TestTurnThroughTheOfficialClient(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	text := script(t, "done", []map[string]any{
		{"name": "get_customer", "arguments": map[string]any{"customer_id": "123"}},
		{"name": "get_customer", "arguments": map[string]any{"customer_id": "456"}},
	})
	stream := b.client.Beta.Agents.Sessions.NewStreaming(ctx, sessionParams(text, "get_customer"))
	defer stream.Close()
	before := eventTypes(stream, "agent.session.requires_action")
	require.NoError(t, stream.Err())
	require.Equal(t, []string{
		"agent.session.created", "agent.session.turn.created", "agent.session.turn.item.added",
		"agent.session.in_progress", "agent.session.turn.in_progress",
		"agent.session.turn.item.added", "agent.session.turn.item.added", "agent.session.requires_action",
	}, before)

	required := stream.Current().Session
	ses := b.get(t, required.ID)
	require.Equal(t, openai.AgentSessionStatusRequiresAction, ses.Status)
	require.Len(t, ses.RequiredActions, 2)
	require.Equal(t, required.RequiredActions[0].CallID, ses.RequiredActions[0].CallID)
	require.JSONEq(t, `{"customer_id":"456"}`, ses.RequiredActions[1].JSON.Arguments.Raw())
	turn, err := b.client.Beta.Agents.Sessions.Turns.Get(ctx, ses.ID, ses.RequiredActions[0].TurnID)
	require.NoError(t, err)
	require.Equal(t, openai.TurnStatusWaiting, turn.Status)

	require.NoError(t, b.post(t, ses.ID, "k1", success(ses.RequiredActions[0], `{"found":true}`)))
	require.Len(t, b.get(t, ses.ID).RequiredActions, 1)
	require.NoError(t, b.post(t, ses.ID, "k2", failure(ses.RequiredActions[1], "customer 456 not found")))

	after := eventTypes(stream, "")
	require.NoError(t, stream.Err(), "the creation stream ends cleanly after the first idle")
	require.Equal(t, []string{
		"agent.session.turn.item.added", "agent.session.turn.item.done",
		"agent.session.turn.item.added", "agent.session.turn.item.done",
		"agent.session.in_progress",
		"agent.session.turn.item.added", "agent.session.turn.content_part.added", "agent.session.turn.output_text.delta",
		"agent.session.turn.output_text.done", "agent.session.turn.content_part.done", "agent.session.turn.item.done",
		"agent.session.turn.completed", "agent.session.idle",
	}, after)
	require.Equal(t, "done", b.lastText(t, ses.ID))

	results, err := b.sim.Results(ses.ID)
	require.NoError(t, err)
	require.Equal(t, `"{\"found\":true}"`, string(results[0].Output))
	require.False(t, results[1].Success)
	require.Equal(t, `"customer 456 not found"`, string(results[1].Error))

	st := b.sim.Stats()
	require.Equal(t, []int64{1, 1, 1, 2, 2, 0, 2}, []int64{
		st.Sessions, st.Turns, st.TurnsCompleted, st.Calls, st.ResultsAccepted, st.Pending, st.Batches,
	})
	require.Equal(t, map[int]int64{1: 2}, st.BatchSizes)
}

func TestSDKToolRunner(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	params := sessionParams("Look up customers 123 and 456.", "get_customer")
	params.ToolHandlers = map[string]openai.AgentToolHandler{
		"get_customer": func(_ context.Context, args map[string]any) (any, error) {
			if args["customer_id"] == "123" {
				return map[string]any{"found": true, "customer": map[string]any{"name": "Example Customer", "plan": "pro"}}, nil
			}
			return map[string]any{"found": false, "customer": nil}, nil
		},
	}
	stream := b.client.Beta.Agents.Sessions.NewStreaming(testContext(t), params)
	result, err := openai.BetaAgentSessionFinalResult(stream)
	require.NoError(t, err)
	require.Equal(t, "Customer 123 is Example Customer (plan pro). Customer 456 was not found.", result.OutputText())
}

func weatherTools(name, arguments string) string {
	var args struct {
		City string
		A, B float64
		Op   string
	}
	_ = json.Unmarshal([]byte(arguments), &args)
	switch name {
	case "get_weather":
		return map[string]string{
			"北京": `{"city":"北京","weather":"晴","temp_c":22}`, "上海": `{"city":"上海","weather":"多云","temp_c":25}`,
			"Beijing": `{"weather":"sunny","temp_c":22}`, "Shanghai": `{"weather":"cloudy","temp_c":25}`,
		}[args.City]
	case "calculate":
		if args.Op == "sub" {
			return fmt.Sprintf(`{"result":%v}`, args.A-args.B)
		}
	case "get_time":
		return `{"time":"12:30"}`
	}
	return "unexpected"
}

func TestBuiltInModel(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	for _, tc := range []struct {
		question, answer string
		rounds           int
	}{
		{"北京和上海今天各是什么天气？两地温差多少度？", "北京今天晴、22 度,上海多云、25 度,两地温差 3 度。", 2},
		{"北京和上海今天各是什么天气?两地温差多少度?", "北京今天晴、22 度,上海多云、25 度,两地温差 3 度。", 2},
		{
			"What is the weather in Beijing and Shanghai today, and how many degrees apart are they?",
			"Beijing today: sunny, 22 degrees, Shanghai: cloudy, 25 degrees, a difference of 3 degrees.", 2,
		},
		{"北京今天多少度?", "北京今天晴、22 度。", 1},
		{"北京今天适合穿什么?", "北京今天晴、22 度。", 1},
		{"Weather in Beijing?", "Beijing today: sunny, 22 degrees.", 1},
		{"What should I wear in Beijing?", "Beijing today: sunny, 22 degrees.", 1},
		{"现在几点了?", "现在是 12:30。", 1},
		{"What time is it?", "It is 12:30.", 1},
		{"这个点北京还适合晨跑吗?", "现在 12:30,北京今天晴、22 度。", 1},
		{"Hello!", "I am a small built-in model. I answer scripts and a few known questions; this is not one of them.", 0},
	} {
		t.Run(tc.question, func(t *testing.T) {
			t.Parallel()
			id := b.create(t, tc.question, "get_weather", "calculate", "get_time", "get_customer")
			answer, rounds := b.answerAll(t, id, weatherTools)
			require.Equal(t, tc.answer, answer)
			require.Equal(t, tc.rounds, rounds)
		})
	}
}

func TestArgumentsLeaveAsScripted(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)
	arguments := []string{
		`{"n":9007199254740993}`, `{"n":1e400}`, `{"b":1,"a":2}`, `{"k":1,"k":2}`, `{"html":"<a&b>"}`, deep, `""`, `null`,
		`[]`, `"{\"x\":1}"`, `{ "spaced" : [ 1 , 2 ] }`, `{"u":"\ud800"}`, "{\n\"line\":1}", `{"z":"\u0000"}`,
	}
	var calls []string
	for _, a := range arguments {
		calls = append(calls, `{"name":"f","arguments":`+a+`}`)
	}
	calls = append(calls, `{"name":"f"}`)
	text := `{"rounds":[[` + strings.Join(calls, ",") + `]],"say":"ok"}`
	b := start(t, simulator.Config{})

	stream := b.client.Beta.Agents.Sessions.NewStreaming(testContext(t), sessionParams(text, "f"))
	defer stream.Close()
	var streamed []string
	for stream.Next() && stream.Current().Type != "agent.session.requires_action" {
		if item := stream.Current().Item; item.Type == "function_call" {
			streamed = append(streamed, item.JSON.Arguments.Raw())
		}
	}
	require.NoError(t, stream.Err())
	id := stream.Current().Session.ID
	ses := b.get(t, id)
	require.Len(t, ses.RequiredActions, len(arguments)+1)
	for i, want := range arguments {
		require.Equal(t, want, ses.RequiredActions[i].JSON.Arguments.Raw())
		require.Equal(t, want, streamed[i])
	}
	require.NotContains(t, ses.RequiredActions[len(arguments)].RawJSON(), "arguments")
}
