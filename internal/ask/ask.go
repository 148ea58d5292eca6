// Package ask puts one question to an agent that has all registered functions: the
// quickest way to see a function called.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/callfan/callfan/internal/toollist"
	"github.com/callfan/callfan/pkg/call"
)

// Question is what is asked, and of whom.
type Question struct {
	Model string
	Text  string
	// Functions are the tools that the agent gets.
	Functions []call.Function
	// Watch has a dispatcher watch the session.
	Watch func(ctx context.Context, session string) error
}

// Answer is how the turn ended.
type Answer struct {
	Session string
	Calls   []Call
	Text    string
}

// Call is one call of the turn and what came of it: the output's or the error's JSON.
type Call struct {
	Function          string
	Arguments, Result json.RawMessage
	Failed            bool
}

// ErrFailed says that the session or its turn failed.
var ErrFailed = errors.New("the agent's turn failed")

// Body is the request that creates a session for a question. The parameters of the
// tools are the very bytes that were registered.
func Body(model, text string, functions []call.Function) ([]byte, error) {
	rest, err := json.Marshal(map[string]any{"environment": map[string]any{"type": "none"}, "input": text})
	if err != nil {
		return nil, err
	}
	named, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	body := append(append([]byte(`{"agent":{"model":`), named...), `,"tools":`...)
	if body, _, err = toollist.Append(body, functions, toollist.Options{}); err != nil {
		return nil, err
	}
	return append(append(body, "},"...), rest[1:]...), nil
}

// Ask creates a session, waits until its turn has ended, and reads what happened.
func Ask(ctx context.Context, client openai.Client, q Question) (Answer, error) {
	body, err := Body(q.Model, q.Text, q.Functions)
	if err != nil {
		return Answer{}, err
	}
	session, err := client.Beta.Agents.Sessions.New(ctx, openai.BetaAgentSessionNewParams{},
		option.WithRequestBody("application/json", body))
	if err != nil {
		return Answer{}, fmt.Errorf("the session was not created: %w", err)
	}
	answer := Answer{Session: session.ID}
	if err := q.Watch(ctx, session.ID); err != nil {
		return answer, fmt.Errorf("session %s is not watched: %w", session.ID, err)
	}
	if err := ended(ctx, client, session.ID); err != nil {
		return answer, err
	}
	answer.Calls, answer.Text, err = Read(ctx, client, session.ID)
	return answer, err
}

// ended waits until the session has a turn behind it.
func ended(ctx context.Context, client openai.Client, id string) error {
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for {
		session, err := client.Beta.Agents.Sessions.Get(ctx, id)
		switch {
		case err != nil:
			return err
		case session.Status == "failed":
			return fmt.Errorf("%w: session %s: %s", ErrFailed, id, session.Error)
		case session.Status == "idle":
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-poll.C:
		}
	}
}

// Read gives the calls of a session and the agent's last message.
func Read(ctx context.Context, client openai.Client, id string) (calls []Call, text string, err error) {
	index := map[string]int{}
	pages := client.Beta.Agents.Sessions.Items.ListAutoPaging(ctx, id, openai.BetaAgentSessionItemListParams{
		Order: openai.BetaAgentSessionItemListParamsOrderAsc,
	})
	for pages.Next() {
		item := pages.Current()
		switch item.Type {
		case "function_call":
			f := item.AsFunctionCall()
			index[f.CallID] = len(calls)
			calls = append(calls, Call{Function: f.Name, Arguments: json.RawMessage(f.JSON.Arguments.Raw())})
		case "function_call_output":
			f := item.AsFunctionCallOutput()
			i, ok := index[f.CallID]
			if !ok {
				continue
			}
			calls[i].Failed = f.Status == "failed"
			calls[i].Result = json.RawMessage(f.JSON.Output.Raw())
			if calls[i].Failed {
				calls[i].Result = json.RawMessage(f.JSON.Error.Raw())
			}
		case "message":
			if item.Role != "assistant" {
				continue
			}
			for _, part := range item.AsMessage().Content {
				if part.Type == "output_text" {
					text = part.Text
				}
			}
		}
	}
	return calls, text, pages.Err()
}
