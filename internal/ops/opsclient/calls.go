package opsclient

import (
	"context"
	"net/http"
	"net/url"

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
