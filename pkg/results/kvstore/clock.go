package kvstore

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// clock is the server's clock, read once a minute and counted on locally by the
// monotonic clock, so that a local clock that is wrong or jumps does no harm.
type clock struct {
	stream jetstream.Stream

	mu     sync.Mutex
	local  time.Time
	server time.Time
}

// clockAge is how long a reading is counted on.
const clockAge = time.Minute

// now is the server's time in milliseconds.
func (c *clock) now(ctx context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() || time.Since(c.local) > clockAge {
		if err := c.read(ctx); err != nil {
			return 0, err
		}
	}
	return c.server.Add(time.Since(c.local)).UnixMilli(), nil
}

// read takes the middle of the request for the moment at which the server
// looked at its clock.
func (c *clock) read(ctx context.Context) error {
	start := time.Now()
	info, err := c.stream.Info(ctx)
	if err != nil {
		return explain(ctx, err)
	}
	c.local = start.Add(time.Since(start) / 2)
	c.server = info.TimeStamp
	if c.server.IsZero() { // a server that does not tell
		c.server = c.local
	}
	return nil
}
