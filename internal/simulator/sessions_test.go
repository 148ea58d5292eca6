package simulator_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

func TestSessionListsPageAndFilter(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	var made []string
	for i := range 45 {
		params := sessionParams("hello")
		params.Metadata = map[string]string{"parity": strconv.Itoa(i % 2), "team": "a&b=ü"}
		ses, err := b.client.Beta.Agents.Sessions.New(ctx, params)
		require.NoError(t, err)
		made = append(made, ses.ID)
	}
	for _, order := range []openai.BetaAgentSessionListParamsOrder{"asc", "desc"} {
		pager := b.client.Beta.Agents.Sessions.ListAutoPaging(ctx, openai.BetaAgentSessionListParams{Limit: openai.Int(10), Order: order})
		var got []string
		for pager.Next() {
			got = append(got, pager.Current().ID)
		}
		require.NoError(t, pager.Err())
		require.Len(t, got, 45)
		if order == "asc" {
			require.Equal(t, made, got)
		} else {
			require.Equal(t, made[44], got[0])
		}
	}
	page, err := b.client.Beta.Agents.Sessions.List(ctx, openai.BetaAgentSessionListParams{
		Metadata: &map[string]string{"parity": "1", "team": "a&b=ü"}, Limit: openai.Int(100),
	})
	require.NoError(t, err)
	require.Len(t, page.Data, 22)
	require.False(t, page.HasMore)
	page, err = b.client.Beta.Agents.Sessions.List(ctx, openai.BetaAgentSessionListParams{
		Metadata: &map[string]string{"parity": "1", "other": "x"},
	})
	require.NoError(t, err)
	require.Empty(t, page.Data)
	page, err = b.client.Beta.Agents.Sessions.List(ctx, openai.BetaAgentSessionListParams{AgentID: openai.String("agent_none")})
	require.NoError(t, err)
	require.Empty(t, page.Data)
	for _, params := range []openai.BetaAgentSessionListParams{
		{Limit: openai.Int(101)}, {Limit: openai.Int(0)}, {Order: "up"}, {After: openai.String("sess_none")},
	} {
		_, err = b.client.Beta.Agents.Sessions.List(ctx, params)
		requireAPIError(t, err, 400, "invalid_request_error", "")
	}

	late := start(t, with(func(sw *simulator.Switches) { sw.MetadataFilterLag = 200 * time.Millisecond }))
	params := sessionParams("hello")
	params.Metadata = map[string]string{"k": "v"}
	_, err = late.client.Beta.Agents.Sessions.New(ctx, params)
	require.NoError(t, err)
	filtered := func() int {
		page, err := late.client.Beta.Agents.Sessions.List(ctx, openai.BetaAgentSessionListParams{Metadata: &map[string]string{"k": "v"}})
		require.NoError(t, err)
		return len(page.Data)
	}
	require.Zero(t, filtered())
	require.Eventually(t, func() bool { return filtered() == 1 }, 20*time.Second, 10*time.Millisecond)
}

func TestSessionUpdate(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	id := b.create(t, "hello", "f")
	tools := []openai.AgentToolParamUnion{functionTool("g", true), {OfParamToolSearch: &openai.AgentToolParamToolSearch{}}}
	ses, err := b.client.Beta.Agents.Sessions.Update(ctx, id, openai.BetaAgentSessionUpdateParams{
		Agent:    openai.BetaAgentSessionUpdateParamsAgent{Model: openai.String("other"), Tools: &tools},
		Metadata: map[string]string{"k": "v"},
	})
	require.NoError(t, err)
	require.Equal(t, "other", ses.Agent.Model)
	require.Len(t, ses.Agent.Tools, 1, "sessions never list tool_search")
	require.Equal(t, "g", ses.Agent.Tools[0].Name)
	require.True(t, ses.Agent.Tools[0].Async)
	require.Equal(t, map[string]string{"k": "v"}, ses.Metadata)
	_, err = b.client.Beta.Agents.Sessions.Update(ctx, id, openai.BetaAgentSessionUpdateParams{})
	requireAPIError(t, err, 400, "invalid_request_error", "At least one update field is required.")
	message := openai.AgentSessionInputParamOfParamAgentSessionInputMessage([]openai.AgentSessionInputMessageParam{
		{Content: []openai.InputContentParamUnion{openai.InputContentParamOfParamInputText(script(t, "", oneCall("f")))}},
	})
	requireAPIError(t, b.post(t, id, "", message), 400, "invalid_request_error", `The script calls "f", which is no function in agent.tools.`)
}

func TestSessionDelete(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	id := b.create(t, script(t, "ok", oneCall("f")), "f")
	_, err := b.client.Beta.Agents.Sessions.Delete(ctx, id)
	requireAPIError(t, err, 409, "conflict_error", "session must be durably idle or failed without required actions before deletion")
	require.NoError(t, b.post(t, id, "", success(b.get(t, id).RequiredActions[0], "1")))
	stream := b.client.Beta.Agents.Sessions.Events.StreamStreaming(ctx, id)
	defer stream.Close()
	require.NoError(t, stream.Err())
	for range 2 {
		gone, err := b.client.Beta.Agents.Sessions.Delete(ctx, id)
		require.NoError(t, err)
		require.True(t, gone.Deleted)
		require.Equal(t, id, gone.ID)
	}
	require.False(t, stream.Next())
	require.NoError(t, stream.Err(), "the open stream ends with a bare EOF")
	_, err = b.client.Beta.Agents.Sessions.Get(ctx, id)
	requireAPIError(t, err, 404, "not_found_error", "")
	_, err = b.client.Beta.Agents.Sessions.Delete(ctx, "sess_never")
	requireAPIError(t, err, 404, "not_found_error", "")
	require.Empty(t, b.sim.SessionIDs())
}

func TestManyDeletionsKeepTheOrder(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	var made []string
	for range 120 {
		made = append(made, b.create(t, "hello"))
	}
	for _, id := range made[:100] {
		_, err := b.client.Beta.Agents.Sessions.Delete(testContext(t), id)
		require.NoError(t, err)
	}
	require.Equal(t, made[100:], b.sim.SessionIDs())
	page, err := b.client.Beta.Agents.Sessions.List(testContext(t), openai.BetaAgentSessionListParams{After: openai.String(made[110]), Order: "asc"})
	require.NoError(t, err)
	require.Len(t, page.Data, 9)
	require.Equal(t, made[111], page.Data[0].ID)
}

func TestTurnsAndItemsLists(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	id := b.create(t, script(t, "first", oneCall("f")), "f")
	b.answerAll(t, id, func(string, string) string { return "1" })
	// The real client's own follow-up helper subscribes, posts and runs to idle.
	run := b.client.Beta.Agents.Sessions.Stream(ctx, id, openai.AgentSessionStreamParams{
		Input: script(t, "second", oneCall("f")),
		ToolHandlers: map[string]openai.AgentToolHandler{
			"f": func(context.Context, map[string]any) (any, error) { return "2", nil },
		},
	})
	result, err := run.FinalResult()
	require.NoError(t, err)
	require.Equal(t, "second", result.OutputText())

	turns, err := b.client.Beta.Agents.Sessions.Turns.List(ctx, id, openai.BetaAgentSessionTurnListParams{})
	require.NoError(t, err)
	require.Len(t, turns.Data, 2)
	require.Equal(t, result.TurnID(), turns.Data[0].ID)
	require.Equal(t, openai.TurnStatusCompleted, turns.Data[1].Status)
	pager := b.client.Beta.Agents.Sessions.Turns.Items.ListAutoPaging(ctx, id, result.TurnID(), openai.BetaAgentSessionTurnItemListParams{
		Limit: openai.Int(1), Order: "asc",
	})
	var types []string
	for pager.Next() {
		types = append(types, pager.Current().Type)
	}
	require.NoError(t, pager.Err())
	require.Equal(t, []string{"message", "function_call", "function_call_output", "message"}, types)
	_, err = b.client.Beta.Agents.Sessions.Turns.Get(ctx, id, "turn_none")
	requireAPIError(t, err, 404, "not_found_error", "")
	subagents, err := b.client.Beta.Agents.Sessions.Subagents.List(ctx, id, openai.BetaAgentSessionSubagentListParams{})
	require.NoError(t, err)
	require.Empty(t, subagents.Data)

	failing := b.create(t, `{"rounds":[],"fail":"server_error","say":""}`)
	turns, err = b.client.Beta.Agents.Sessions.Turns.List(ctx, failing, openai.BetaAgentSessionTurnListParams{})
	require.NoError(t, err)
	require.Equal(t, openai.TurnStatusFailed, turns.Data[0].Status)
	require.EqualValues(t, "server_error", turns.Data[0].Error.Code)
}

func TestStoredAgents(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	agent, err := b.client.Beta.Agents.New(ctx, openai.BetaAgentNewParams{
		Model: "gpt-6-astra", Name: openai.String("orders"), Metadata: map[string]string{"k": "v"},
		Tools: []openai.PersistedAgentToolParamUnion{{OfParamFunction: &openai.PersistedAgentToolParamFunction{
			Name: "f", Description: "d", Parameters: map[string]any{"type": "object"},
		}}},
	})
	require.NoError(t, err)
	params := sessionParams(script(t, "ok", oneCall("f")))
	params.Agent = openai.BetaAgentSessionNewParamsAgent{}
	params.AgentID = openai.String(agent.ID)
	ses, err := b.client.Beta.Agents.Sessions.New(ctx, params)
	require.NoError(t, err)
	require.Equal(t, agent.ID, ses.Agent.ID)
	require.Equal(t, "orders", ses.Agent.Name)
	page, err := b.client.Beta.Agents.Sessions.List(ctx, openai.BetaAgentSessionListParams{AgentID: openai.String(agent.ID)})
	require.NoError(t, err)
	require.Len(t, page.Data, 1)
	updated, err := b.client.Beta.Agents.Update(ctx, agent.ID, openai.BetaAgentUpdateParams{Instructions: openai.String("Help.")})
	require.NoError(t, err)
	require.Equal(t, "Help.", updated.Instructions)
	require.Len(t, updated.Tools, 1)
	agents, err := b.client.Beta.Agents.List(ctx, openai.BetaAgentListParams{})
	require.NoError(t, err)
	require.Len(t, agents.Data, 1)
	_, err = b.client.Beta.Agents.Delete(ctx, agent.ID)
	require.NoError(t, err)
	_, err = b.client.Beta.Agents.Get(ctx, agent.ID)
	requireAPIError(t, err, 404, "not_found_error", "")
	_, err = b.client.Beta.Agents.Sessions.New(ctx, params)
	requireAPIError(t, err, 404, "not_found_error", "")
}
