package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/callfan/callfan/internal/apiclient"
	"github.com/callfan/callfan/pkg/call"
)

// Event is a stream event, reduced to what tells when to look at a session. It
// is an alias of an unnamed struct, so that packages that must not import each
// other agree on it.
type Event = struct {
	// Type is the event's type, such as agent.session.requires_action.
	Type string
	// SessionID and TurnID are empty where the event names none.
	SessionID, TurnID string
	// Item is the type of the item that the event is about, such as
	// function_call; empty for other events.
	Item string
}

// Stream subscribes to a session's events until the stream or ctx ends. It calls
// onOpen once, when the API has answered and events can no longer be missed, and
// onEvent for each event, both on the calling goroutine.
//
// It returns nil when the server closed the stream in order, else a
// *call.Refusal: the subscription was refused, the connection was cut, or the
// server sent an error frame, whose code is in Code. Events are not replayed:
// whatever ended the stream, subscribe again and then retrieve the session.
//
// Heartbeats cannot be seen, so a silent stream is not a sign of life. A line of
// more than 32 MiB ends the stream (the official client's limit).
func (c *Client) Stream(ctx context.Context, id string, onOpen func(), onEvent func(Event)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, err := c.open(ctx, cancel, id)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	frames := ssestream.NewDecoder(res)
	c.log.DebugContext(ctx, "stream opened", "session_id", id, "request_id", res.Header.Get(apiclient.RequestIDHeader))
	onOpen()
	for frames.Next() {
		done, err := c.frame(res, frames.Event().Data, onEvent)
		if err != nil || done {
			return err
		}
	}
	err = frames.Err()
	if ctx.Err() != nil {
		err = apiclient.Ended(ctx)
	}
	if err == nil {
		return nil
	}
	return c.api.Refusal(apiclient.Read(res, nil), fmt.Errorf("the stream was cut: %w", err))
}

// open subscribes. The time limit ends with the answer's headers.
func (c *Client) open(ctx context.Context, cancel context.CancelCauseFunc, id string) (*http.Response, error) {
	// The official client's own event types are not used: they would decode every
	// text delta by reflection, in each of thousands of streams.
	res, refused := c.api.Open(ctx, cancel, c.api.Timeout(), func(ctx context.Context, opts ...option.RequestOption) error {
		return c.sessions.Events.StreamStreaming(ctx, id, append(opts, option.WithQuery("include_obfuscation", "false"))...).Err()
	})
	if refused != nil {
		return nil, refused
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || media != "text/event-stream" {
		_ = res.Body.Close()
		return nil, c.api.Unreadable(apiclient.Read(res, nil), fmt.Errorf("got HTTP %d with content type %q instead of an event stream", res.StatusCode, media))
	}
	return res, nil
}

// frame reads one frame; done says that it was the stream's end mark.
func (c *Client) frame(res *http.Response, data []byte, onEvent func(Event)) (done bool, err error) {
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return true, nil
	}
	var wire struct {
		Type      string          `json:"type"`
		SessionID string          `json:"session_id"`
		TurnID    string          `json:"turn_id"`
		Error     json.RawMessage `json:"error"`
		Session   struct {
			ID string `json:"id"`
		} `json:"session"`
		Item struct {
			Type string `json:"type"`
		} `json:"item"`
	}
	var mistyped *json.UnmarshalTypeError // a member that callfan does not understand spoils no other
	if err := json.Unmarshal(data, &wire); err != nil && !errors.As(err, &mistyped) {
		return false, c.api.Unreadable(apiclient.Read(res, nil), fmt.Errorf("a frame of the stream: %w", err))
	}
	if wire.Type == "error" || (len(wire.Error) > 0 && !bytes.Equal(wire.Error, []byte("null"))) {
		return false, c.errorFrame(apiclient.Read(res, nil), wire.Error)
	}
	if wire.SessionID == "" {
		wire.SessionID = wire.Session.ID
	}
	onEvent(Event{Type: wire.Type, SessionID: wire.SessionID, TurnID: wire.TurnID, Item: wire.Item.Type})
	return false, nil
}

// errorFrame is the refusal that an error frame stands for.
func (c *Client) errorFrame(a apiclient.Answer, raw json.RawMessage) *call.Refusal {
	said := apiclient.ReadError(raw)
	r := c.api.Said(a, said, "the stream reported an error")
	switch said.Code {
	case "unauthorized", "forbidden", "authentication_error":
		r.Class = call.RefusedAuth
	case "not_found_error":
		r.Class = call.RefusedGone
	default:
		r.Class = call.RefusedBusy
	}
	return r
}
