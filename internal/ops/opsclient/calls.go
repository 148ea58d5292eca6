package opsclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/pkg/call"
)

// Calls lists the recorded calls of a session.
func (c *Client) Calls(ctx context.Context, session string) ([]ops.Call, error) {
	var list ops.CallList
	err := c.do(ctx, http.MethodGet, "/v1/calls?session="+url.QueryEscape(session), nil, &list)
	return list.Calls, err
}

// Call shows one call; an unknown one is an *Error with the status 404.
func (c *Client) Call(ctx context.Context, key call.Key) (ops.Call, error) {
	var shown ops.Call
	err := c.do(ctx, http.MethodGet, "/v1/calls/"+key.String(), nil, &shown)
	return shown, err
}

// CallsIn lists calls of the whole installation by the name of a state, or of
// ops.OpenCalls, the oldest first, and says whether there are more. A limit of 0 is
// ops.DefaultCalls.
func (c *Client) CallsIn(ctx context.Context, state string, limit int) (ops.CallList, error) {
	query := url.Values{"state": {state}}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var list ops.CallList
	err := c.do(ctx, http.MethodGet, "/v1/calls?"+query.Encode(), nil, &list)
	return list, err
}

// Decide hands in an operator's decision about a call. It is kept when there is no
// error, and acted on soon after. An unknown call is an *Error with the status 404, one
// of which nothing is left to decide one with 409.
func (c *Client) Decide(ctx context.Context, key call.Key, d ops.Decision) error {
	return c.do(ctx, http.MethodPost, "/v1/calls/"+key.String()+"/decision", d.Body(), nil)
}
