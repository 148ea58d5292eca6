package opsclient

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/callfan/callfan/internal/ops"
)

// DeadLetters lists dead letters of a function, or of all when it is empty, the
// newest first, without their bodies. A limit of 0 is ops.DefaultDeadLetters.
func (c *Client) DeadLetters(ctx context.Context, function string, limit int) ([]ops.DeadLetter, error) {
	query := url.Values{}
	if function != "" {
		query.Set("function", function)
	}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var list ops.DeadLetterList
	err := c.do(ctx, http.MethodGet, "/v1/dead?"+query.Encode(), nil, &list)
	return list.DeadLetters, err
}

// DeadLetter shows one dead letter with its body; an unknown one is an *Error with
// the status 404.
func (c *Client) DeadLetter(ctx context.Context, sequence uint64) (ops.DeadLetter, error) {
	var letter ops.DeadLetter
	err := c.do(ctx, http.MethodGet, deadPath(sequence), nil, &letter)
	return letter, err
}

// DropDeadLetter deletes a dead letter.
func (c *Client) DropDeadLetter(ctx context.Context, sequence uint64) error {
	return c.do(ctx, http.MethodDelete, deadPath(sequence), nil, nil)
}

// ReplayDeadLetter publishes a refused outcome once more; a letter that cannot be
// replayed is an *Error with the status 409 that says why.
func (c *Client) ReplayDeadLetter(ctx context.Context, sequence uint64) error {
	return c.do(ctx, http.MethodPost, deadPath(sequence)+"/replay", nil, nil)
}

func deadPath(sequence uint64) string { return fmt.Sprintf("/v1/dead/%d", sequence) }
