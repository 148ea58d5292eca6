package mcptools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// The waits before a server is connected to again, doubling.
	firstWait, longestWait = 250 * time.Millisecond, 30 * time.Second
	// steady is how long a connection holds for the waits to start over.
	steady = time.Minute
)

// errNotConnected is what readiness and calls say about a server that was not
// connected yet.
var errNotConnected = errors.New("it is not connected yet")

// Client keeps one server connected. Make it by New and end it by Close.
type Client struct {
	server  Server
	version string
	log     *slog.Logger
	slots   slots
	running progress

	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	session *session      // nil while there is none
	why     error         // why there is none
	changed chan struct{} // closed when session or why changes
	served  []tool        // those that Functions chose
}

// New connects to the server, and again whenever the connection ends, until Close.
// The version is that of the executor, for the server to know.
func New(server Server, version string, log *slog.Logger) *Client {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{
		server: server, version: version, log: log.With("mcp_server", server.Name), slots: newSlots(server.Concurrency),
		stop: stop, done: make(chan struct{}), why: errNotConnected, changed: make(chan struct{}),
	}
	go func() {
		defer close(c.done)
		c.keep(ctx)
	}()
	return c
}

// Close ends the connection, and the server if it is a program.
func (c *Client) Close() {
	c.stop()
	<-c.done
}

// Name is that of the server.
func (c *Client) Name() string { return c.server.Name }

// Ready says why the server cannot be called now; nil when it can.
func (c *Client) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return c.why
	}
	return nil
}

// keep keeps a session until ctx ends.
func (c *Client) keep(ctx context.Context) {
	wait, legacy := firstWait, false
	for {
		s, err := c.open(ctx, legacy)
		if err == nil {
			began := time.Now()
			c.log.Info("MCP server connected", "tools", len(s.tools), "protocol", s.InitializeResult().ProtocolVersion)
			c.set(s, nil)
			c.compare(s.tools)
			c.watch(ctx, s)
			err = s.cause()
			s.end()
			if time.Since(began) > steady {
				wait = firstWait
			}
		} else {
			legacy = !legacy
		}
		if ctx.Err() != nil {
			c.set(nil, errors.New("the executor stops"))
			return
		}
		c.set(nil, err)
		c.log.Warn("MCP server is not connected; trying on", "error", err, "wait", wait)
		pause(ctx, time.Duration(float64(wait)*(0.8+0.4*rand.Float64())))
		wait = min(2*wait, longestWait)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// watch waits for the end of the session or of ctx, and looks at the tools whenever
// the server says that they changed.
func (c *Client) watch(ctx context.Context, s *session) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ended:
			return
		case <-s.broken:
			return
		case <-s.changed:
		}
		asked, cancel := context.WithTimeout(ctx, c.server.startTimeout())
		tools, err := list(asked, s.ClientSession)
		cancel()
		if err == nil {
			c.compare(tools)
		} else if ctx.Err() == nil {
			c.log.Warn("the tools of an MCP server changed and cannot be listed", "error", err)
		}
	}
}

// compare says how the server's tools differ from those that are served. They stay as
// they are: an executor serves what it registered when it began.
func (c *Client) compare(tools []tool) {
	c.mu.Lock()
	served := c.served
	c.mu.Unlock()
	if served == nil {
		return
	}
	now, err := c.server.selected(tools)
	if err != nil {
		c.log.Error("the tools of an MCP server changed and are not as configured any more; calls of those that are gone fail", "error", err)
		return
	}
	if added, removed, changed := c.server.changes(served, now); len(added)+len(removed)+len(changed) > 0 {
		c.log.Warn("the tools of an MCP server changed; restart the executor to serve them as they are now",
			"added", added, "removed", removed, "changed", changed)
	}
}

func (c *Client) set(s *session, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.why = s, why
	close(c.changed)
	c.changed = make(chan struct{})
}

// await gives the current session, or waits for one that is not previous until ctx
// ends; its error is then why there is none.
func (c *Client) await(ctx context.Context, previous *session) (*session, error) {
	for {
		c.mu.Lock()
		s, why, changed := c.session, c.why, c.changed
		c.mu.Unlock()
		if s != nil && s != previous {
			return s, nil
		}
		select {
		case <-ctx.Done():
			if why == nil {
				why = errors.New("its connection has just ended")
			}
			return nil, fmt.Errorf("MCP server %q: %w", c.server.Name, why)
		case <-changed:
		}
	}
}
