package apiclient

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/option"
)

// DefaultTimeout bounds one request when Config.Timeout is zero.
const DefaultTimeout = 30 * time.Second

// placeholderKey is sent to servers that were given by base URL without a key.
const placeholderKey = "callfan-no-key"

// ErrNoKey is returned by New when there is neither a key nor a base URL.
var ErrNoKey = errors.New("no API key: set OPENAI_API_KEY, or give a base URL of a server that needs none (callfan simulate)")

// Config says which API to talk to and as whom. Nothing is read from the
// environment.
type Config struct {
	// APIKey needs the scopes api.agents.read and api.agents.write for the Agents
	// API, and api.responses.write for the Responses API. May be empty when BaseURL is
	// given; a placeholder is sent then. It appears in no error and in no log.
	APIKey string
	// BaseURL is the API's root with its version, such as a simulator's address.
	// Defaults to https://api.openai.com/v1.
	BaseURL string
	// Organization and Project select where a key of several is used. Default to
	// the key's own.
	Organization, Project string
	// Timeout bounds one request, and the opening of a stream but not its life.
	// Defaults to DefaultTimeout.
	Timeout time.Duration
	// HTTPClient carries the requests. Its Timeout and CheckRedirect are ignored:
	// the first would end streams, and a redirected submission could look accepted.
	// Defaults to a client made for thousands of open streams.
	HTTPClient *http.Client
	// Logger hears of answers (debug) and of what the API sends that callfan does
	// not know. Defaults to no logging.
	Logger *slog.Logger
}

// Client makes requests through the official client. It is safe for concurrent use.
type Client struct {
	options []option.RequestOption
	http    *http.Client
	timeout time.Duration
	key     string
	log     *slog.Logger
}

// New makes a client. It makes no request; a wrong key shows at the first one.
func New(cfg Config) (*Client, error) {
	key := strings.TrimSpace(cfg.APIKey)
	switch {
	case key == "" && cfg.BaseURL == "":
		return nil, ErrNoKey
	case key == "":
		key = placeholderKey
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the API key contains a character that no key has: a space, a line break or a letter outside ASCII; check the file or variable that it comes from")
	}
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("timeout %s: must not be negative", cfg.Timeout)
	}
	carrier := &http.Client{Transport: newTransport()}
	if cfg.HTTPClient != nil {
		*carrier = *cfg.HTTPClient
		carrier.Timeout = 0
	}
	carrier.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	opts := []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithAPIKey(key),
		option.WithHTTPClient(carrier),
		option.WithMaxRetries(0),
	}
	if cfg.BaseURL != "" {
		if err := checkBaseURL(cfg.BaseURL); err != nil {
			return nil, err
		}
		opts = append(opts, option.WithBaseURL(cfg.BaseURL))
	}
	if cfg.Organization != "" {
		opts = append(opts, option.WithOrganization(cfg.Organization))
	}
	if cfg.Project != "" {
		opts = append(opts, option.WithProject(cfg.Project))
	}
	return &Client{
		options: opts,
		http:    carrier,
		timeout: cmp.Or(cfg.Timeout, DefaultTimeout),
		key:     key,
		log:     cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
	}, nil
}

// Options are what the official client's services are made with.
func (c *Client) Options() []option.RequestOption { return c.options }

// Timeout is the bound of one request.
func (c *Client) Timeout() time.Duration { return c.timeout }

// Logger is the configured one, or one that is silent.
func (c *Client) Logger() *slog.Logger { return c.log }

// Close closes the connections that are idle. Requests under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func checkBaseURL(base string) error {
	u, err := url.Parse(base)
	if err != nil {
		return errors.New("the base URL cannot be read; want something like https://api.openai.com/v1")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("base URL %s: want an http or https address such as https://api.openai.com/v1", u.Redacted())
	}
	return nil
}
