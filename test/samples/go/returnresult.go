package main

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
)

// returnResult is the sample "return a function result": it answers one required action of a session.
func returnResult(ctx context.Context, client openai.Client, session *openai.AgentSession, action openai.AgentSessionRequiredActionUnion) {
	// sample: return a function result
	result := openai.AgentSessionInputParamAgentSessionInputToolResult{
		TurnID: action.TurnID,
		CallID: action.CallID,
	}

	arguments := action.Arguments.(map[string]any)
	customerID := arguments["customer_id"].(string)
	var customer any
	if customerID == "123" {
		customer = map[string]any{"name": "Example Customer", "plan": "pro"}
	}
	output, err := json.Marshal(map[string]any{"found": customer != nil, "customer": customer})
	if err != nil {
		panic(err)
	}
	result.Success = true
	result.Output = openai.AgentFunctionCallOutputParamUnion{OfString: openai.String(string(output))}

	err = client.Beta.Agents.Sessions.Events.New(ctx, session.ID, openai.BetaAgentSessionEventNewParams{
		Events: []openai.AgentSessionInputParamUnion{{OfParamAgentSessionInputToolResult: &result}},
	})
	if err != nil {
		panic(err)
	}
	// end of sample
}
