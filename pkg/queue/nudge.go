package queue

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
)

// maxSession bounds a session's id in a notice.
const maxSession = 512

// Nudge tells every dispatcher of the installation to look at a session that it serves.
// It is a broadcast without an answer: who is not connected does not hear it.
func (c *Conn) Nudge(session string) error {
	if session == "" || len(session) > maxSession {
		return fmt.Errorf("nudge: a session id has %d bytes; want 1 to %d", len(session), maxSession)
	}
	if err := c.nc.Publish(c.names.nudge(), []byte(session)); err != nil {
		return fmt.Errorf("nudge %s: %w", session, err)
	}
	return nil
}

// OnNudge calls f for every nudge, this replica's own included, until stop is called.
// f must not block.
func (c *Conn) OnNudge(f func(session string)) (stop func(), err error) {
	sub, err := c.nc.Subscribe(c.names.nudge(), func(m *nats.Msg) {
		if n := len(m.Data); n > 0 && n <= maxSession {
			f(string(m.Data))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listen for nudges: %w", err)
	}
	return sync.OnceFunc(func() { _ = sub.Unsubscribe() }), nil
}
