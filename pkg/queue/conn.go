package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// Conn is a connection to NATS, for one dispatcher or one executor. It reconnects
// for ever. It is safe for concurrent use.
type Conn struct {
	cfg    Config
	names  names
	log    *slog.Logger
	nc     *nats.Conn
	js     jetstream.JetStream
	async  jetstream.JetStream
	denied *denials
	// probe asks JetStream something that this client is allowed to ask.
	probe atomic.Pointer[func(context.Context) error]
	// answer says how a call stands, once ServeOutcomes was called.
	answer atomic.Pointer[func(context.Context, call.Question) (call.Standing, error)]

	mu sync.Mutex
	// changed is closed and replaced whenever the connection comes or goes.
	changed chan struct{}
	// down is why there is no connection; nil while there is one.
	down   error
	closed chan struct{}
}

// asyncWindow is how many publishes may wait for their confirmation at once.
const asyncWindow = 4096

// Connect starts connecting and returns at once: the connection may still be on
// its way, and is tried for ever. Ready says how it stands. The error is about
// the configuration only. ctx bounds nothing beyond this call.
func Connect(_ context.Context, cfg Config) (*Conn, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	c := &Conn{
		cfg: cfg, names: names{cfg.Prefix}, log: cfg.Logger, denied: newDenials(),
		changed: make(chan struct{}), closed: make(chan struct{}),
	}
	opts = append(opts,
		nats.ConnectHandler(c.cameUp),
		nats.ReconnectHandler(c.cameUp),
		nats.DisconnectErrHandler(c.wentDown),
		nats.ReconnectErrHandler(c.stillDown),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
		nats.ErrorHandler(c.asyncError),
	)
	if c.nc, err = nats.Connect(cfg.URL, opts...); err != nil {
		return nil, fmt.Errorf("queue: connect to NATS: %w", err)
	}
	if err := c.nc.LastError(); err != nil && !c.nc.IsConnected() {
		c.stillDown(c.nc, err)
	}
	if c.js, err = jetstream.NewWithAPIPrefix(c.nc, cfg.APIPrefix); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("queue: %w", err)
	}
	c.async, err = jetstream.NewWithAPIPrefix(c.nc, cfg.APIPrefix,
		jetstream.WithPublishAsyncMaxPending(asyncWindow), jetstream.WithPublishAsyncTimeout(ackTimeout))
	if err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("queue: %w", err)
	}
	return c, nil
}

// JetStream is the JetStream context of the connection, for a second adapter on
// the same server such as a KV store.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// NATS is the client connection itself.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// MaxPayload is the server's limit for a message with its headers, in bytes; zero
// before the first connection.
func (c *Conn) MaxPayload() int64 { return c.nc.MaxPayload() }

// TooLarge says whether err means that the message can never be published because
// of its size.
func (c *Conn) TooLarge(err error) bool { return errors.Is(err, ErrTooLarge) }

// Gone says whether err, from Publish, means that the hand-over is over already.
func (c *Conn) Gone(err error) bool { return errors.Is(err, ErrGone) }

// Ready says whether the connection stands and JetStream answers. The error names
// what is missing.
func (c *Conn) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if !c.nc.IsConnected() {
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("not connected to NATS: %w", cmp.Or(c.down, nats.ErrNoServers))
	}
	if err := c.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("NATS does not answer: %w", err)
	}
	if probe := c.probe.Load(); probe != nil {
		if err := (*probe)(ctx); err != nil {
			return fmt.Errorf("JetStream does not answer: %w", err)
		}
	}
	return nil
}

// setProbe makes Ready ask JetStream this.
func (c *Conn) setProbe(probe func(context.Context) error) { c.probe.Store(&probe) }

// Close sends what is buffered, lets subscriptions finish, for 5 s at most, and
// closes the connection.
func (c *Conn) Close() {
	if c.nc.IsClosed() {
		return
	}
	if !c.nc.IsConnected() || c.nc.Drain() != nil {
		c.nc.Close()
	}
	select {
	case <-c.closed:
	case <-time.After(drainTimeout + time.Second):
		c.nc.Close()
		<-c.closed
	}
}

func (c *Conn) cameUp(nc *nats.Conn) {
	c.mu.Lock()
	c.down = nil
	c.mu.Unlock()
	server := nc.ConnectedUrlRedacted()
	if c.cfg.InProcess != nil {
		server = "in this process" // the client reports an address that it did not use
	}
	c.log.Info("connected to NATS", "server", server, "max_payload", nc.MaxPayload(), "reconnects", nc.Stats().Reconnects)
	c.notifyChange()
}

func (c *Conn) wentDown(nc *nats.Conn, err error) {
	if !nc.IsClosed() && !nc.IsDraining() && err != nil {
		c.mu.Lock()
		c.down = err
		c.mu.Unlock()
		c.log.Warn("connection to NATS lost; connecting again until it stands", "error", err)
	}
	c.notifyChange()
}

// stillDown logs why connecting fails when the reason is a new one.
func (c *Conn) stillDown(_ *nats.Conn, err error) {
	c.mu.Lock()
	again := c.down != nil && strings.EqualFold(c.down.Error(), err.Error())
	c.down = err
	c.mu.Unlock()
	if !again {
		c.log.Warn("cannot connect to NATS; trying until it works", "url", redact(c.cfg.URL), "error", err)
	}
}

func (c *Conn) notifyChange() {
	c.mu.Lock()
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
}

// stateChange is closed when the connection next comes or goes.
func (c *Conn) stateChange() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *Conn) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		if denied := parseViolation(err.Error(), c.cfg.User); denied != nil {
			c.denied.record(denied.Subject)
			c.log.Error("the NATS server denied a subject; allow it in this user's permissions",
				"operation", denied.Operation, "subject", denied.Subject)
			if c.cfg.OnPermissionError != nil {
				c.cfg.OnPermissionError(denied)
			}
			return
		}
	}
	if sub != nil {
		c.log.Error("NATS subscription failed", "subject", sub.Subject, "error", err)
		return
	}
	c.log.Error("NATS reported an error", "error", err)
}
