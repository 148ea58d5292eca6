package responses

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/callfan/callfan/internal/apiclient"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

// pageSize is the most that the API gives in one page.
const pageSize = 100

// Retrieve follows a response from the event after the given number; of 0 or less it
// gives all of its events. Without stream it gives the response's present state: Ended, or
// Created while the response is being made. The same is given where the response cannot
// be streamed, since it was not begun as a stream or since the service has none, and
// where its stream ends in order without saying how the response ended, as that of a
// cancelled one may.
//
// A response that does not exist, or no longer, is refused as gone. A stream that is cut is
// a busy refusal: retrieve again, from the last event.
func (c *Client) Retrieve(ctx context.Context, response string, after int64, stream bool, on func(runs.Event) error) error {
	if err := needID("response", response); err != nil {
		return err
	}
	if !stream {
		return c.state(ctx, response, on)
	}
	params := sdk.ResponseGetParams{IncludeObfuscation: openai.Bool(false)}
	if after > 0 {
		params.StartingAfter = openai.Int(after)
	}
	refused := true // until the API takes the request
	err := c.follow(ctx, "response_stream", response, c.api.Timeout(), func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.responses.Get(ctx, response, params, append(opts,
			option.WithQuery("stream", "true"), option.WithHeader("Accept", eventStream))...)
		refused = err != nil
		return err
	}, &progress{on: on, response: response})
	r, ok := errors.AsType[*call.Refusal](err)
	if ok && ((refused && r.Class == call.RefusedInvalid) || errors.Is(r, errUnfinished)) {
		return c.state(ctx, response, on)
	}
	return err
}

// state tells how far a response is.
func (c *Client) state(ctx context.Context, response string, on func(runs.Event) error) error {
	a, err := c.api.Ask(ctx, "response", about(response), func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.responses.Get(ctx, response, sdk.ResponseGetParams{}, opts...)
		return err
	})
	if err != nil || !a.Accepted() {
		return c.api.Refusal(a, err)
	}
	return (&progress{on: on, response: response, api: c.api, answer: a}).whole(a.Body)
}

// Cancel ends a response that is made in the background. It is nil also for a response
// that cannot be cancelled (it is over, does not exist any more, or was not made in the
// background): there is nothing left to do.
func (c *Client) Cancel(ctx context.Context, response string) error {
	if err := needID("response", response); err != nil {
		return err
	}
	a, err := c.api.Ask(ctx, "response_cancel", about(response), func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.responses.Cancel(ctx, response, opts...)
		return err
	})
	if a.Accepted() { // even if the rest of the answer was lost
		return nil
	}
	r := c.api.Refusal(a, err)
	_, enveloped := apiclient.ReadEnvelope(a.Body)
	if enveloped && (r.Class == call.RefusedGone || r.Class == call.RefusedInvalid || a.Status == http.StatusConflict) {
		c.log.DebugContext(ctx, "a response could not be cancelled", "response_id", response, "code", r.Code, "request_id", r.RequestID)
		return nil
	}
	return r
}

// Items gives the newest items of a conversation, the newest first, 100 at most. A
// conversation that does not exist is refused as gone.
func (c *Client) Items(ctx context.Context, conversation string) ([]json.RawMessage, error) {
	if err := needID("conversation", conversation); err != nil {
		return nil, err
	}
	params := conversations.ItemListParams{Limit: openai.Int(pageSize), Order: conversations.ItemListParamsOrderDesc}
	a, err := c.api.Ask(ctx, "conversation_items", slog.String("conversation", conversation), func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.items.List(ctx, conversation, params, opts...)
		return err
	})
	if err != nil || !a.Accepted() {
		return nil, c.api.Refusal(a, err)
	}
	var page struct {
		Data *[]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(a.Body, &page); err != nil {
		return nil, c.api.Unreadable(a, err)
	}
	if page.Data == nil {
		return nil, c.api.Unreadable(a, errors.New("the answer shows no items"))
	}
	return *page.Data, nil
}
