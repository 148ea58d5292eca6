// Command go starts a session with the question given, answers its calls with the sample, and prints the session's id
// when the turn has ended.
//
//	go run ./test/samples/go stream|retrieve TOOL-FILE QUESTION
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
)

func main() {
	how, toolFile, question := os.Args[1], os.Args[2], os.Args[3]
	tool, err := os.ReadFile(toolFile)
	check(err)
	ctx, client := context.Background(), openai.NewClient()
	start := openai.BetaAgentSessionNewParams{
		Agent: openai.BetaAgentSessionNewParamsAgent{
			Model: openai.String("gpt-6-astra"),
			Tools: []openai.AgentToolParamUnion{param.Override[openai.AgentToolParamUnion](json.RawMessage(tool))},
		},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input:       openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String(question)},
	}
	if how == "stream" {
		fmt.Fprintln(os.Stdout, stream(ctx, client, start))
	} else {
		fmt.Fprintln(os.Stdout, retrieve(ctx, client, start))
	}
}

func stream(ctx context.Context, client openai.Client, start openai.BetaAgentSessionNewParams) (sessionID string) {
	events := client.Beta.Agents.Sessions.NewStreaming(ctx, start)
	for events.Next() {
		if event, ok := events.Current().AsAny().(openai.AgentSessionRequiresActionEvent); ok {
			sessionID = event.Session.ID
			answerAll(ctx, client, &event.Session)
		}
	}
	check(events.Err())
	return sessionID
}

func retrieve(ctx context.Context, client openai.Client, start openai.BetaAgentSessionNewParams) (sessionID string) {
	session, err := client.Beta.Agents.Sessions.New(ctx, start)
	check(err)
	for answered := false; session.Status != openai.AgentSessionStatusIdle || !answered; {
		if session.Status == openai.AgentSessionStatusRequiresAction {
			answerAll(ctx, client, session)
			answered = true
		}
		<-time.After(20 * time.Millisecond)
		session, err = client.Beta.Agents.Sessions.Get(ctx, session.ID)
		check(err)
	}
	return session.ID
}

func answerAll(ctx context.Context, client openai.Client, session *openai.AgentSession) {
	for _, action := range session.RequiredActions {
		returnResult(ctx, client, session, action)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
