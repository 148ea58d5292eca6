package agents

import (
	"log/slog"

	"github.com/openai/openai-go/v3"

	"github.com/callfan/callfan/internal/apiclient"
)

// DefaultTimeout bounds one request when Config.Timeout is zero.
const DefaultTimeout = apiclient.DefaultTimeout

// ErrNoKey is returned by New when there is neither a key nor a base URL.
var ErrNoKey = apiclient.ErrNoKey

// Config says which API to talk to and as whom.
type Config = apiclient.Config

// Client talks to the Agents API. It is safe for concurrent use.
type Client struct {
	api      *apiclient.Client
	sessions openai.BetaAgentSessionService
	agents   openai.BetaAgentService
	log      *slog.Logger
}

// New makes a client. It makes no request; a wrong key shows at the first one.
func New(cfg Config) (*Client, error) {
	api, err := apiclient.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{
		api:      api,
		sessions: openai.NewBetaAgentSessionService(api.Options()...),
		agents:   openai.NewBetaAgentService(api.Options()...),
		log:      api.Logger(),
	}, nil
}

// Close closes the connections that are idle. Requests under way go on.
func (c *Client) Close() { c.api.Close() }

// about names a session in the log.
func about(session string) slog.Attr { return slog.String("session_id", session) }
