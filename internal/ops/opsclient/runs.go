package opsclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/runs"
)

// StartRun starts a run; see runs.Engine.Start for the request. A request that makes no
// sense is an *Error with the status 400.
func (c *Client) StartRun(ctx context.Context, request json.RawMessage) (runs.Run, error) {
	var run runs.Run
	err := c.do(ctx, http.MethodPost, "/v1/runs", request, &run)
	return run, err
}

// Run gives a run; an unknown one is an *Error with the status 404.
func (c *Client) Run(ctx context.Context, id string) (runs.Run, error) {
	var run runs.Run
	err := c.do(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(id), nil, &run)
	return run, err
}

// CancelRun asks to end a run, and gives it as it was.
func (c *Client) CancelRun(ctx context.Context, id string) (runs.Run, error) {
	var run runs.Run
	err := c.do(ctx, http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/cancel", nil, &run)
	return run, err
}

// errCut says that a stream of notices ended before the run did.
var errCut = errors.New("the stream of notices was cut")

// FollowRun calls each for every notice about a run from its beginning, to its end. An
// error leaves open how far the run is.
func (c *Client) FollowRun(ctx context.Context, id string, each func(runs.Notice)) error {
	last := ""
	for tries := range 20 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(tries) * 100 * time.Millisecond):
		}
		over, err := c.follow(ctx, id, &last, each)
		if over || err != nil {
			return err
		}
	}
	return errCut
}

// follow reads one stream; over says that it came to the run's end.
func (c *Client) follow(ctx context.Context, id string, last *string, each func(runs.Notice)) (over bool, err error) {
	req, err := c.request(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(id)+"/events", nil)
	if err != nil {
		return false, err
	}
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	streaming := *c.http
	streaming.Timeout = 0
	res, err := streaming.Do(req)
	if err != nil {
		return false, unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return false, problem(res.StatusCode, body)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "id":
			*last = value
		case "data":
			var n runs.Notice
			if err := json.Unmarshal([]byte(value), &n); err != nil {
				return false, fmt.Errorf("a notice cannot be read: %w", err)
			}
			each(n)
			if n.Type == runs.NoticeEnded {
				return true, nil
			}
		}
	}
	return false, ctx.Err()
}
