package agents

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"
)

// errNoAnswer is the cause of requests that Config.Timeout ended. It is not
// context.DeadlineExceeded, which would say that the caller's time was up.
var errNoAnswer = errors.New("no answer in time")

// answer is what came back of one request. The zero value means that none came.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) accepted() bool { return a.status >= 200 && a.status < 300 }

// ask makes one request and waits for its whole answer. A nil error means that
// some answer below 400 was read to its end; it may still be a redirect.
func (c *Client) ask(ctx context.Context, operation, session string, send func(context.Context, ...option.RequestOption) error) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errNoAnswer)
	defer cancel()
	start := time.Now()
	var res *http.Response
	var body []byte
	err := send(ctx, option.WithResponseInto(&res), option.WithResponseBodyInto(&body))
	if err != nil && ctx.Err() != nil {
		err = ended(ctx)
	}
	a := read(res, body)
	c.log.DebugContext(ctx, "agents API asked", "operation", operation, "session_id", session,
		"status", a.status, "request_id", a.header.Get(requestIDHeader), "took", time.Since(start))
	return a, err
}

// read gathers an answer. The official client leaves the body of a refusal,
// already in memory, in res.
func read(res *http.Response, body []byte) answer {
	if res == nil {
		return answer{}
	}
	if body == nil && res.StatusCode >= http.StatusBadRequest && res.Body != nil {
		body, _ = io.ReadAll(res.Body) // a refusal that was cut is classified by its status
		_ = res.Body.Close()
	}
	return answer{status: res.StatusCode, header: res.Header, body: body}
}

// ended says why ctx is over: errNoAnswer when this package ended it, else the
// caller's own error.
func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errNoAnswer) {
		return errNoAnswer
	}
	return ctx.Err()
}
