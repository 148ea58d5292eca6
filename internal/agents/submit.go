package agents

import (
	"context"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/callfan/callfan/pkg/call"
)

// Submit sends a batch of tool results in one request. Nil means that the API
// accepted the batch (any 2xx); that is not yet proof that it was applied. A busy
// refusal leaves open whether it was accepted: submit the same batch again, under
// the same idempotency key. An empty batch makes no request.
func (c *Client) Submit(ctx context.Context, batch call.Batch) error {
	if len(batch.Answers) == 0 {
		return nil
	}
	params := openai.BetaAgentSessionEventNewParams{}
	if batch.IdempotencyKey != "" {
		params.IdempotencyKey = openai.String(batch.IdempotencyKey)
	}
	body := appendEvents(nil, batch.Answers)
	a, err := c.ask(ctx, "submit", batch.Session, func(ctx context.Context, opts ...option.RequestOption) error {
		return c.sessions.Events.New(ctx, batch.Session, params, append(opts, option.WithRequestBody("application/json", body))...)
	})
	if a.accepted() { // even if the rest of the answer was lost
		return nil
	}
	return c.submitRefusal(a, err, batch)
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
