package responses

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/callfan/callfan/internal/apiclient"
)

const eventStream = "text/event-stream"

// errUnfinished is why a stream that ended in order is a refusal all the same.
var errUnfinished = errors.New("the stream ended before the response did")

// follow makes a request and tells what its answer says, be it a stream or a whole
// response. opening bounds the wait for the answer's headers.
func (c *Client) follow(ctx context.Context, operation, response string, opening time.Duration, send apiclient.Send, p *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	res, refused := c.api.Open(ctx, cancel, opening, send)
	if refused != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "OpenAI API refused", slog.String("operation", operation), about(response),
			slog.Int("status", refused.Status), slog.String("request_id", refused.RequestID), slog.Duration("took", time.Since(start)))
		return refused
	}
	defer res.Body.Close()
	res.Body = newImpatient(res.Body, c.idle, cancel)
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	c.log.LogAttrs(ctx, slog.LevelDebug, "OpenAI API answers", slog.String("operation", operation), about(response),
		slog.Int("status", res.StatusCode), slog.String("request_id", res.Header.Get(apiclient.RequestIDHeader)),
		slog.Bool("stream", media == eventStream), slog.Duration("took", time.Since(start)))
	p.answer = apiclient.Read(res, nil)
	p.api = c.api
	switch {
	case res.StatusCode >= http.StatusMultipleChoices:
		return c.api.Refusal(p.answer, nil)
	case media == eventStream:
		return c.stream(ctx, res, p)
	default:
		return c.whole(ctx, res, p)
	}
}

// stream reads frames until the response is over. A line of more than 32 MiB ends the
// stream (the official client's limit).
func (c *Client) stream(ctx context.Context, res *http.Response, p *progress) error {
	frames := ssestream.NewDecoder(res)
	for frames.Next() {
		data := frames.Event().Data
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		over, err := p.frame(data)
		if err != nil || over {
			return err
		}
	}
	err := frames.Err()
	switch {
	case ctx.Err() != nil:
		err = apiclient.Ended(ctx)
	case err == nil:
		return c.api.Refusal(p.answer, errUnfinished)
	}
	return c.api.Refusal(p.answer, fmt.Errorf("the stream was cut: %w", err))
}

// whole reads an answer that is a response, finished or not.
func (c *Client) whole(ctx context.Context, res *http.Response, p *progress) error {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		if ctx.Err() != nil {
			err = apiclient.Ended(ctx)
		}
		return c.api.Refusal(p.answer, fmt.Errorf("the answer was cut: %w", err))
	}
	return p.whole(body)
}

// impatient is a body whose reader waits only so long for more. The time that the reader
// itself takes does not count.
type impatient struct {
	io.ReadCloser

	limit time.Duration
	timer *time.Timer
}

func newImpatient(body io.ReadCloser, limit time.Duration, cancel context.CancelCauseFunc) *impatient {
	timer := time.AfterFunc(limit, func() { cancel(apiclient.ErrSilent) })
	timer.Stop()
	return &impatient{ReadCloser: body, limit: limit, timer: timer}
}

// Read reads what is there, or waits until the limit.
func (i *impatient) Read(p []byte) (int, error) {
	i.timer.Reset(i.limit)
	defer i.timer.Stop()
	return i.ReadCloser.Read(p)
}
