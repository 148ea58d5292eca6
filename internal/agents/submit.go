package agents

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/callfan/callfan/pkg/call"
)

// Submit sends a batch of tool results in one request. Nil means that the API
// accepted the batch (any 2xx); that is not yet proof that it was applied. A busy
// refusal leaves open whether it was accepted: submit the same batch again, under
// the same idempotency key. An empty batch makes no request; otherwise it is one,
// sent a second time only if a kept connection broke under it.
func (c *Client) Submit(ctx context.Context, batch call.Batch) error {
	if len(batch.Answers) == 0 {
		return nil
	}
	params := openai.BetaAgentSessionEventNewParams{}
	if batch.IdempotencyKey != "" {
		params.IdempotencyKey = openai.String(batch.IdempotencyKey)
	}
	body := appendEvents(nil, batch.Answers)
	a, err := c.api.Ask(ctx, "submit", about(batch.Session), func(ctx context.Context, opts ...option.RequestOption) error {
		return c.sessions.Events.New(ctx, batch.Session, params, append(opts,
			option.WithRequestBody("application/json", body), option.WithMiddleware(replayOnce))...)
	})
	if a.Accepted() { // even if the rest of the answer was lost
		return nil
	}
	return c.submitRefusal(a, err, batch)
}

// errReplayed ends a submission whose connections keep breaking.
var errReplayed = errors.New("the connection broke twice")

// replayOnce bounds what net/http does on its own: a request with an idempotency
// key that fails on a kept connection is sent again on the next one, as long as
// there are any. Once is right, because servers close connections that were
// silent; more would be a storm.
func replayOnce(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	if body := req.GetBody; body != nil {
		replayed := false
		req.GetBody = func() (io.ReadCloser, error) {
			if replayed {
				return nil, errReplayed
			}
			replayed = true
			return body()
		}
	}
	return next(req)
}

// appendEvents builds the request's body by hand: the official client would
// re-encode the outputs.
func appendEvents(dst []byte, answers []call.Answer) []byte {
	dst = append(dst, `{"events":[`...)
	for i, a := range answers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = a.AppendEvent(dst)
	}
	return append(dst, `]}`...)
}
