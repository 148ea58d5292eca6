package mcptools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastLegacy is the newest version of MCP whose sessions begin by "initialize". A
// server that hangs on the question which newer ones begin with is asked by this one.
const lastLegacy = "2025-11-25"

// closeGrace bounds the orderly end of a session.
const closeGrace = 3 * time.Second

// session is one connection to a server, with its tools.
type session struct {
	*mcp.ClientSession
	tools   []tool        // all of them, when it began
	changed chan struct{} // told that the server's list changed
	process *process      // nil for an endpoint
	closeup func()
	broken  chan struct{} // told that the connection takes no more requests
	ended   chan struct{} // closed once the connection is gone
	why     error         // once ended is closed
}

// open connects to the server and lists its tools.
func (c *Client) open(ctx context.Context, legacy bool) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.server.startTimeout())
	defer cancel()
	s := &session{changed: make(chan struct{}, 1), broken: make(chan struct{}, 1), ended: make(chan struct{}), closeup: func() {}}
	transport, err := c.transport(s)
	if err != nil {
		return nil, err
	}
	var options mcp.ClientSessionOptions
	if legacy {
		options.ProtocolVersion = lastLegacy
	}
	if s.ClientSession, err = c.implementation(s).Connect(ctx, transport, &options); err == nil {
		go func() {
			defer close(s.ended)
			s.why = s.Wait()
		}()
		s.tools, err = list(ctx, s.ClientSession)
	}
	if err == nil {
		return s, nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not answer within %s", c.server.startTimeout())
	}
	if s.process != nil {
		if complaint := s.process.complaint(pipesLinger); complaint != nil {
			err = complaint
		}
	}
	s.end()
	return nil, err
}

func (c *Client) transport(s *session) (mcp.Transport, error) {
	if c.server.Command == nil {
		transport, closeIdle := c.server.Endpoint.transport()
		s.closeup = closeIdle
		return transport, nil
	}
	p, err := start(c.server.Command)
	if err != nil {
		return nil, fmt.Errorf("the server could not be started: %w", err)
	}
	s.process, s.closeup = p, p.stop
	return p.transport(func() {
		c.log.Warn("an MCP server writes lines to its standard output that are no messages; they are left out")
	}), nil
}

// implementation is the client of the SDK for one session. It offers the server
// nothing: no files, no model, no person to ask.
func (c *Client) implementation(s *session) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "callfan-executor", Version: c.version}, &mcp.ClientOptions{
		Logger:         slog.New(slog.DiscardHandler), // it might quote what a server sent
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			tell(s.changed)
		},
		ProgressNotificationHandler: func(ctx context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.progressed(ctx, r.Params)
		},
	})
}

// tell leaves a note, unless there is one.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// end ends the session in order, and by force when it does not end soon.
func (s *session) end() {
	if s.ClientSession == nil {
		s.closeup()
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = s.Close() // what it says of a server that is gone does not matter
	}()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
	s.closeup()
}

// cause is why the session ended.
func (s *session) cause() error {
	if s.process != nil && s.process.exitsWithin(pipesLinger) {
		return s.process.end
	}
	select {
	case <-s.ended:
		if s.why != nil {
			return s.why
		}
		return errors.New("the server ended the connection")
	default:
		return errors.New("the connection takes no more requests")
	}
}
