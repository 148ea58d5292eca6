package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/callfan/callfan/internal/apiclient"
)

// MaxTools is the size of the largest list of tools that the API takes, in bytes.
const MaxTools = 3 << 20

// ErrToolsTooLarge is wrapped by the error about a list above MaxTools.
var ErrToolsTooLarge = errors.New("the list of tools is too large")

// AgentTools gives the tools of a stored agent, each as the API sent it.
func (c *Client) AgentTools(ctx context.Context, id string) ([]json.RawMessage, error) {
	return c.agentTools(ctx, "agent", func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.agents.Get(ctx, id, opts...)
		return err
	})
}

// SetAgentTools replaces the tools of a stored agent, and gives those that it has then.
// Sessions that were created before keep theirs.
func (c *Client) SetAgentTools(ctx context.Context, id string, tools []json.RawMessage) ([]json.RawMessage, error) {
	list, err := appendTools([]byte(`{"tools":`), tools)
	if err != nil {
		return nil, err
	}
	return c.agentTools(ctx, "agent_update", func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.agents.Update(ctx, id, openai.BetaAgentUpdateParams{},
			append(opts, option.WithRequestBody("application/json", append(list, '}')))...)
		return err
	})
}

// SessionTools gives the tools of a session, each as the API sent it. Tool search is
// never among them.
func (c *Client) SessionTools(ctx context.Context, id string) ([]json.RawMessage, error) {
	return c.sessionTools(ctx, "session", id, func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.sessions.Get(ctx, id, opts...)
		return err
	})
}

// SetSessionTools replaces the tools of a session, from its next model call on, and
// gives those that it has then.
func (c *Client) SetSessionTools(ctx context.Context, id string, tools []json.RawMessage) ([]json.RawMessage, error) {
	list, err := appendTools([]byte(`{"agent":{"tools":`), tools)
	if err != nil {
		return nil, err
	}
	return c.sessionTools(ctx, "session_update", id, func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.sessions.Update(ctx, id, openai.BetaAgentSessionUpdateParams{},
			append(opts, option.WithRequestBody("application/json", append(list, "}}"...)))...)
		return err
	})
}

// appendTools puts the list together by hand: the official client would decode and
// encode the schemas (ADR 0008).
func appendTools(dst []byte, tools []json.RawMessage) ([]byte, error) {
	start := len(dst)
	dst = append(dst, '[')
	for i, tool := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, tool...)
	}
	dst = append(dst, ']')
	if size := len(dst) - start; size > MaxTools {
		return nil, fmt.Errorf("%w: %d bytes, and the API takes %d; leave functions out or shorten their schemas", ErrToolsTooLarge, size, MaxTools)
	}
	return dst, nil
}

func (c *Client) agentTools(ctx context.Context, operation string, send apiclient.Send) ([]json.RawMessage, error) {
	var wire struct {
		Tools json.RawMessage `json:"tools"`
	}
	return c.toolsOf(ctx, operation, "", send, &wire, &wire.Tools)
}

func (c *Client) sessionTools(ctx context.Context, operation, id string, send apiclient.Send) ([]json.RawMessage, error) {
	var wire struct {
		Agent struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"agent"`
	}
	return c.toolsOf(ctx, operation, id, send, &wire, &wire.Agent.Tools)
}

// toolsOf makes one request and decodes its answer into wire, of which list is a part.
// An answer that does not show the tools is an error, never an empty list.
func (c *Client) toolsOf(ctx context.Context, operation, session string, send apiclient.Send, wire any, list *json.RawMessage) ([]json.RawMessage, error) {
	a, err := c.api.Ask(ctx, operation, about(session), send)
	if err != nil || !a.Accepted() {
		return nil, c.api.Refusal(a, err)
	}
	if err := json.Unmarshal(a.Body, wire); err != nil {
		return nil, c.api.Unreadable(a, err)
	}
	if *list == nil {
		return nil, c.api.Unreadable(a, errors.New("the answer shows no tools"))
	}
	var tools []json.RawMessage
	if err := json.Unmarshal(*list, &tools); err != nil {
		return nil, c.api.Unreadable(a, err)
	}
	return tools, nil
}
