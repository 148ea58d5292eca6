package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3/option"

	"github.com/callfan/callfan/pkg/call"
)

// Session retrieves a session. The arguments of its calls are the bytes that the
// API sent: nil when the member is missing, the four bytes null when it is null.
// Required actions of other types, and function calls without the ids that an
// answer needs, are counted in Others.
//
// An answer that does not state the required actions is an error (busy), never a
// session without calls.
func (c *Client) Session(ctx context.Context, id string) (call.Session, error) {
	a, err := c.api.Ask(ctx, "session", about(id), func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.sessions.Get(ctx, id, opts...)
		return err
	})
	if err != nil || !a.Accepted() {
		return call.Session{}, c.api.Refusal(a, err)
	}
	s, err := c.decodeSession(ctx, id, a.Body)
	if err != nil {
		return call.Session{}, c.api.Unreadable(a, err)
	}
	return s, nil
}

// The official client's session type is not used for reading: it would decode
// each tool definition of the session, up to 3 MiB of them, for every look. Here they
// stay bytes.
func (c *Client) decodeSession(ctx context.Context, id string, body []byte) (call.Session, error) {
	var wire struct {
		ID              string          `json:"id"`
		Status          string          `json:"status"`
		RequiredActions json.RawMessage `json:"required_actions"`
		Agent           shownTools      `json:"agent"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return call.Session{}, err
	}
	if wire.ID != id {
		return call.Session{}, fmt.Errorf("asked for session %q, got %q", id, wire.ID)
	}
	if wire.RequiredActions == nil {
		return call.Session{}, errors.New("the session has no required_actions")
	}
	var actions []json.RawMessage
	if err := json.Unmarshal(wire.RequiredActions, &actions); err != nil {
		return call.Session{}, fmt.Errorf("required_actions: %w", err)
	}
	s := call.Session{ID: wire.ID, Status: wire.Status, Tools: json.RawMessage(wire.Agent)}
	for _, raw := range actions {
		if called, ok := c.decodeAction(ctx, id, raw); ok {
			s.Calls = append(s.Calls, called)
		} else {
			s.Others++
		}
	}
	return s, nil
}

// shownTools is the list of tools of an agent. One that cannot be read is none: what is
// pending matters more.
type shownTools json.RawMessage

// UnmarshalJSON takes the list out of the agent.
func (t *shownTools) UnmarshalJSON(agent []byte) error {
	var wire struct {
		Tools json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(agent, &wire) == nil {
		*t = shownTools(wire.Tools)
	}
	return nil
}

// decodeAction reads a required action if it is a function call that can be
// answered.
func (c *Client) decodeAction(ctx context.Context, session string, raw []byte) (call.Call, bool) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil || kind.Type != "function_call" {
		return call.Call{}, false
	}
	var action struct {
		TurnID    string          `json:"turn_id"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(raw, &action); err != nil || action.TurnID == "" || action.CallID == "" {
		c.log.WarnContext(ctx, "function call without usable ids ignored", "session_id", session,
			"turn_id", action.TurnID, "call_id", action.CallID)
		return call.Call{}, false
	}
	return call.Call{
		Key:       call.Key{Session: session, Turn: action.TurnID, Call: action.CallID},
		Function:  action.Name,
		Arguments: action.Arguments,
	}, true
}
