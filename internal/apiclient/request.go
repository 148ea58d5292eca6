package apiclient

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"

	"github.com/callfan/callfan/pkg/call"
)

// RequestIDHeader is the header by which OpenAI finds a request.
const RequestIDHeader = "X-Request-Id"

// errNoAnswer is the cause of requests that a time limit ended. It is not
// context.DeadlineExceeded, which would say that the caller's time was up.
var errNoAnswer = errors.New("no answer in time")

// ErrSilent is the cause of answers that were ended because nothing more of them came.
var ErrSilent = errors.New("the connection went silent")

// Send makes a request by the official client, with the options given in addition.
type Send func(context.Context, ...option.RequestOption) error

// Answer is what came back of one request. The zero value means that none came.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// Header are the answer's headers.
	Header http.Header
	// Body is what was read of the body.
	Body []byte
}

// Accepted says that the API took the request.
func (a Answer) Accepted() bool { return a.Status >= 200 && a.Status < 300 }

// Ask makes one request and waits for its whole answer, for Config.Timeout at most.
// about names what the request is about, for the log. A nil error means that some
// answer below 400 was read to its end; it may still be a redirect.
func (c *Client) Ask(ctx context.Context, operation string, about slog.Attr, send Send) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errNoAnswer)
	defer cancel()
	start := time.Now()
	var res *http.Response
	var body []byte
	err := send(ctx, option.WithResponseInto(&res), option.WithResponseBodyInto(&body))
	if err != nil && ctx.Err() != nil {
		err = Ended(ctx)
	}
	a := Read(res, body)
	c.log.LogAttrs(ctx, slog.LevelDebug, "OpenAI API asked", slog.String("operation", operation), about,
		slog.Int("status", a.Status), slog.String("request_id", a.Header.Get(RequestIDHeader)),
		slog.Duration("took", time.Since(start)))
	return a, err
}

// Open makes one request and waits for the headers of its answer, for the limit at most;
// the body is left to the caller, who closes it. cancel ends ctx, and with it the body.
// An answer of 400 and above is returned as the refusal that it is.
func (c *Client) Open(ctx context.Context, cancel context.CancelCauseFunc, limit time.Duration, send Send) (*http.Response, *call.Refusal) {
	timer := time.AfterFunc(limit, func() { cancel(errNoAnswer) })
	defer timer.Stop()
	var res *http.Response
	if err := send(ctx, option.WithResponseBodyInto(&res)); err != nil {
		if ctx.Err() != nil {
			err = Ended(ctx)
		}
		return nil, c.Refusal(Read(res, nil), err)
	}
	return res, nil
}

// Read gathers an answer. The official client leaves the body of a refusal,
// already in memory, in res.
func Read(res *http.Response, body []byte) Answer {
	if res == nil {
		return Answer{}
	}
	if body == nil && res.StatusCode >= http.StatusBadRequest && res.Body != nil {
		body, _ = io.ReadAll(res.Body) // a refusal that was cut is classified by its status
		_ = res.Body.Close()
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: body}
}

// Ended says why ctx is over: a time limit of ours, or else the caller's own error.
func Ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) || errors.Is(cause, ErrSilent) {
		return cause
	}
	return ctx.Err()
}
