package responses

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/openai/openai-go/v3/conversations"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/callfan/callfan/internal/apiclient"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

// DefaultIdle is how long an answer may be silent when Config.Idle is zero: models think
// for minutes without a word.
const DefaultIdle = 10 * time.Minute

// Config says which API to talk to and as whom.
type Config struct {
	apiclient.Config

	// Idle is how long an answer may be silent, once its request was taken. It is also how
	// long an answer may take that is neither a stream nor made in the background.
	// Defaults to DefaultIdle.
	Idle time.Duration
}

// Client talks to the Responses API. It is safe for concurrent use.
type Client struct {
	api       *apiclient.Client
	responses sdk.ResponseService
	items     conversations.ItemService
	idle      time.Duration
	log       *slog.Logger
}

var _ runs.Model = (*Client)(nil)

// New makes a client. It makes no request; a wrong key shows at the first one. Without a
// key and a base URL the error wraps apiclient.ErrNoKey.
func New(cfg Config) (*Client, error) {
	if cfg.Idle < 0 {
		return nil, fmt.Errorf("idle limit %s: must not be negative", cfg.Idle)
	}
	api, err := apiclient.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	return &Client{
		api:       api,
		responses: sdk.NewResponseService(api.Options()...),
		items:     conversations.NewItemService(api.Options()...),
		idle:      cmp.Or(cfg.Idle, DefaultIdle),
		log:       api.Logger(),
	}, nil
}

// Close closes the connections that are idle. Requests under way go on.
func (c *Client) Close() { c.api.Close() }

// about names a response in the log.
func about(response string) slog.Attr { return slog.String("response_id", response) }

// needID refuses an empty id, which would lead to another endpoint.
func needID(what, id string) error {
	if id != "" {
		return nil
	}
	return &call.Refusal{Class: call.RefusedInvalid, Err: errors.New("the id of the " + what + " is empty")}
}
