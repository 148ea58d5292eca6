package queue

import (
	"time"

	"github.com/nats-io/nats.go"
)

// transit bounds how long a message was on its way. The server does not tell when it sent
// one, and a network that fails for a while delivers late what was sent before. But what
// arrives after something that the server said was sent after that, and what arrives
// after the answer to a ping was sent after the ping (ADR 0012).
type transit struct {
	// silence is longer than the server says nothing on a network that is well.
	silence time.Duration
	// since is a time before which none of the messages that are still to be read was sent.
	since time.Time
	// longest is the bound for the message that was read last.
	longest time.Duration
	// doubted: the messages that follow a silence may all have been sent in it. A ping is
	// under way, and its answer, behind all of them, will be in the line as answered.
	doubted  bool
	pinged   time.Time
	answered *nats.Msg
}

// asked notes that a pull was sent: its messages come after that.
func (t *transit) asked(now time.Time) {
	if !t.doubted {
		t.since = now
	}
}

// read takes a message that was read. It reports whether a ping is wanted.
func (t *transit) read(now time.Time) (ping bool) {
	t.longest = now.Sub(t.since)
	switch {
	case t.doubted:
	case t.longest > t.silence:
		t.doubted, t.pinged, t.answered = true, now, &nats.Msg{}
		return true
	default:
		t.since = now
	}
	return false
}

// arrived takes a message from the line; false when it is the mark of a ping's answer.
func (l *line) arrived(m *nats.Msg) bool {
	l.heard = true
	if l.transit.doubted && m == l.transit.answered {
		l.transit.doubted, l.transit.since = false, l.transit.pinged
		return false
	}
	if l.transit.read(time.Now()) {
		go l.ping(l.transit.answered)
	}
	return true
}

// ping puts the mark into the line once the server has answered a ping: what is behind
// it was sent after the ping.
func (l *line) ping(mark *nats.Msg) {
	for l.c.nc.FlushTimeout(pullExpires) != nil {
		if l.c.nc.IsClosed() || !l.sub.IsValid() {
			return
		}
	}
	select {
	case l.msgs <- mark:
	case <-l.gone:
	}
}
