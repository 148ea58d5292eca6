package queue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// operationTimeout bounds one try of an operation that awaits repeats.
const operationTimeout = 10 * time.Second

// newBackOff waits from 100 ms up to most, for ever.
func newBackOff(most time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(most),
		backoff.WithMaxElapsedTime(0),
	)
}

// awaitConnected returns when the connection stands, or with the cause of ctx's end.
func (c *Conn) awaitConnected(ctx context.Context) error {
	for {
		changed := c.stateChange()
		switch {
		case c.nc.IsConnected():
			return nil
		case c.nc.IsClosed():
			return ErrClosed
		}
		select {
		case <-changed:
		case <-c.closed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// await repeats operation until it succeeds, fails for good, or ctx ends. It logs
// once that it waits and once that it need not any more.
func (c *Conn) await(ctx context.Context, what string, operation func(context.Context) error) error {
	waits, logged := newBackOff(2*time.Second), false
	for {
		if err := c.awaitConnected(ctx); err != nil {
			return fmt.Errorf("queue: %s: %w", what, err)
		}
		attempt, cancel := context.WithTimeout(ctx, operationTimeout)
		err := operation(attempt)
		cancel()
		switch {
		case err == nil:
			if logged {
				c.log.Info("JetStream answers again", "operation", what)
			}
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("queue: %s: %w", what, errors.Join(context.Cause(ctx), err))
		case !transient(err):
			return fmt.Errorf("queue: %s: %w", what, err)
		case !logged:
			logged = true
			c.log.Warn("JetStream does not answer; trying until it does", "operation", what, "error", err)
		}
		if err := sleep(ctx, waits.NextBackOff()); err != nil {
			return fmt.Errorf("queue: %s: %w", what, err)
		}
	}
}

// sleep waits for d, or returns the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// transient says whether the same request may succeed later with nothing changed
// but time.
func transient(err error) bool {
	for _, passing := range []error{
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrNoServers,
		nats.ErrReconnectBufExceeded, nats.ErrStaleConnection, context.DeadlineExceeded, jetstream.ErrNoStreamResponse,
		jetstream.ErrAsyncPublishTimeout, jetstream.ErrTooManyStalledMsgs, errRaced,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503 && !storageFull(api)
	}
	// The client's key-value watchers report with the older type.
	api, ok := errors.AsType[*nats.APIError](err)
	return ok && api.Code == 503
}

// errRaced: another replica changed the same thing; look again.
var errRaced = errors.New("changed by another replica at the same time")

func storageFull(err *jetstream.APIError) bool {
	switch err.ErrorCode {
	case 10077: // the stream refused the message: full, or its disk failed
		return strings.Contains(err.Description, "maximum")
	case 10023, 10028, 10047: // the server's or the account's resources are used up
		return true
	default:
		return false
	}
}

// redact removes passwords and tokens from a list of addresses.
func redact(list string) string {
	parts := strings.Split(list, ",")
	for i, part := range parts {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil {
			parts[i] = "(unreadable address)"
			continue
		}
		if u.User != nil {
			u.User = url.User("xxxxx")
		}
		parts[i] = u.String()
	}
	return strings.Join(parts, ",")
}
