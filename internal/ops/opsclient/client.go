// Package opsclient is a client of a dispatcher's admin API.
package opsclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/ops"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

// Config says which dispatcher to ask.
type Config struct {
	// URL is the root of the admin API. Defaults to http://127.0.0.1:8420.
	URL string
	// Token is the admin token, empty when there is none.
	Token string
	// HTTPClient defaults to one with a timeout of 30 s.
	HTTPClient *http.Client
}

// Client asks one dispatcher. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// Error is an answer that says what is wrong.
type Error struct {
	// Status is that of HTTP; Code and Message are the API's.
	Status        int
	Code, Message string
}

// Error is the API's message.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the dispatcher answered HTTP %d", e.Status)
	}
	return e.Message
}

// New makes a client. It makes no request.
func New(cfg Config) (*Client, error) {
	if cfg.URL == "" {
		cfg.URL = "http://" + ops.DefaultListen
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("the address of the admin API cannot be used; want something like http://%s", ops.DefaultListen)
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{Timeout: 30 * time.Second}
	}
	return &Client{base: strings.TrimSuffix(cfg.URL, "/"), token: cfg.Token, http: cfg.HTTPClient}, nil
}

// Sessions lists the watched sessions of the installation.
func (c *Client) Sessions(ctx context.Context) ([]ops.Session, error) {
	var list ops.SessionList
	err := c.do(ctx, http.MethodGet, "/v1/sessions", nil, &list)
	return list.Sessions, err
}

// Watch attaches sessions; those that are watched already are fine.
func (c *Client) Watch(ctx context.Context, ids ...string) error {
	body, err := json.Marshal(ops.Attachment{IDs: ids})
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, "/v1/sessions", body, nil)
}

// Unwatch detaches sessions, one after the other; those that are not watched are
// fine. At an error the rest is left attached.
func (c *Client) Unwatch(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if err := c.do(ctx, http.MethodDelete, "/v1/sessions/"+url.PathEscape(id), nil, nil); err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
	}
	return nil
}

// Functions lists the functions that executors have registered.
func (c *Client) Functions(ctx context.Context) ([]ops.Function, error) {
	var list ops.FunctionList
	err := c.do(ctx, http.MethodGet, "/v1/functions", nil, &list)
	return list.Functions, err
}

// Readiness says whether the dispatcher can do its work; not being ready is no
// error.
func (c *Client) Readiness(ctx context.Context) (ops.Readiness, error) {
	var r ops.Readiness
	err := c.do(ctx, http.MethodGet, "/readyz", nil, &r)
	return r, err
}

// request makes a request that sends JSON as it is, nil for no body.
func (c *Client) request(ctx context.Context, method, path string, send []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(send))
	if err != nil {
		return nil, err
	}
	if send != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// unreachable is the error of a request that had no answer.
func unreachable(err error) error {
	return fmt.Errorf("no dispatcher answers: %w; start one, or name its address and port", err)
}

// problem is the error that an answer stands for.
func problem(status int, text []byte) error {
	var p ops.Problem
	_ = json.Unmarshal(text, &p) // who answers is perhaps no dispatcher
	return &Error{Status: status, Code: p.Error.Code, Message: p.Error.Message}
}

// do makes a request and reads the answer.
func (c *Client) do(ctx context.Context, method, path string, send []byte, into any) error {
	req, err := c.request(ctx, method, path, send)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return unreachable(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the dispatcher's answer was cut: %w", err)
	}
	if readiness := res.StatusCode == http.StatusServiceUnavailable && path == "/readyz"; res.StatusCode/100 != 2 && !readiness {
		return problem(res.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("unreadable answer; is it a dispatcher that listens there? %w", err)
	}
	return nil
}
