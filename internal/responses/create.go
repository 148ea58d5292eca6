package responses

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/callfan/callfan/internal/runs"
)

// Create asks for a response. body is posted as it is: its members stream and background
// decide how the API answers, and a service that ignores them is understood as well.
// Where a service leaves out Created or an ItemDone, they are told before Ended.
//
// It is one request. A busy refusal leaves open whether the response is being made: the
// API is not known to honour idempotency keys here. What the request names and the API
// does not find (a model, a previous response, a conversation) is an invalid request; of
// a lost previous response the code is previous_response_not_found. A missing output is
// an invalid request too, with the call's id in CallID if the API names it.
func (c *Client) Create(ctx context.Context, body json.RawMessage, key string, on func(runs.Event) error) error {
	var asks struct {
		Stream     bool `json:"stream"`
		Background bool `json:"background"`
	}
	_ = json.Unmarshal(body, &asks) // what is wrong with it is for the API to say
	opening := c.idle
	if asks.Stream || asks.Background {
		opening = c.api.Timeout()
	}
	accept := "application/json"
	if asks.Stream {
		accept = eventStream
	}
	err := c.follow(ctx, "response_create", "", opening, func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.responses.New(ctx, sdk.ResponseNewParams{}, append(opts, option.WithHeader("Accept", accept),
			option.WithRequestBody("application/json", []byte(body)), option.WithMiddleware(keyed(key)))...)
		return err
	}, &progress{on: on, complete: true})
	return createRefusal(err)
}

// keyed sends the key, and hides it from net/http: a request with an Idempotency-Key
// that fails on a kept connection is sent again by the transport, and whoever asked for
// one response would get two. The transport knows the header by its canonical spelling only.
func keyed(key string) option.Middleware {
	return func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		if key != "" {
			req.Header["idempotency-key"] = []string{key}
		}
		return next(req)
	}
}
