package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How pulls are asked for. A short heartbeat finds a lost pull soon: after a
// change of the consumer's leader a server may forget it without a word (ADR 0003).
const (
	pullExpires   = 10 * time.Second
	pullHeartbeat = time.Second
	// heartbeatsPerLease is how many heartbeats come in a lease at least. Without one, a
	// call that comes to an idle pull may have been on its way since the last (transit).
	heartbeatsPerLease = 6
	pullSilence        = 2*pullHeartbeat + 500*time.Millisecond
	// maxPull is the most that one pull may ask for.
	maxPull = 256
	// pullBytes bounds what one pull may bring, so that large messages do not fill
	// the memory; a message of max_payload always fits.
	pullBytes = 16 << 20
	// lineBuffer holds what outstanding pulls can bring, statuses included, so that
	// the client never has to drop a message.
	lineBuffer = 3*maxPull + 64
)

// heartbeatOf is how often a pull says that it is alive, for calls of such a lease.
func heartbeatOf(ackWait time.Duration) time.Duration {
	if ackWait <= 0 {
		return pullHeartbeat
	}
	return min(pullHeartbeat, ackWait/heartbeatsPerLease)
}

// line is one subscription on which the messages of pulls arrive. Ordering pulls
// by hand, rather than by the client's Fetch, lets a cancelled pull hand over what
// was already on its way, and starts no goroutine per pull.
type line struct {
	c         *Conn
	consumer  string
	request   string
	inbox     string
	heartbeat time.Duration
	// reply is where the answers to the latest pull arrive, and pulls how many there
	// were. The server may report the end of a pull that had already been read to the
	// end; the subject of the report tells which pull it means.
	reply   string
	pulls   int
	msgs    chan *nats.Msg
	sub     *nats.Subscription
	gone    chan struct{}
	silence *time.Timer
	changed <-chan struct{}
	heard   bool
	transit transit
}

func (c *Conn) openLine(b Binding) (*line, error) {
	heartbeat := heartbeatOf(b.AckWait)
	l := &line{
		c: c, consumer: b.Consumer, heartbeat: heartbeat, transit: transit{silence: heartbeat * 5 / 2},
		inbox:   c.nc.NewInbox(),
		request: c.cfg.APIPrefix + ".CONSUMER.MSG.NEXT." + b.Stream + "." + b.Consumer,
		msgs:    make(chan *nats.Msg, lineBuffer), gone: make(chan struct{}),
		silence: time.NewTimer(pullSilence), changed: c.stateChange(),
	}
	if !c.nc.IsConnected() {
		return nil, fmt.Errorf("%w: not connected", ErrInterrupted)
	}
	var err error
	if l.sub, err = c.nc.ChanSubscribe(l.inbox+".*", l.msgs); err != nil {
		return nil, l.broken(err)
	}
	// The client calls it once more when the connection closes while it drains.
	gone := sync.OnceFunc(func() { close(l.gone) })
	l.sub.SetClosedHandler(func(string) { gone() })
	return l, nil
}

func (l *line) broken(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining) {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return fmt.Errorf("%w: %w", ErrInterrupted, err)
}

// ask sends one pull for n messages.
func (l *line) ask(n int) error {
	body := make([]byte, 0, 112)
	body = append(body, `{"expires":`...)
	body = strconv.AppendInt(body, int64(pullExpires), 10)
	body = append(body, `,"batch":`...)
	body = strconv.AppendInt(body, int64(n), 10)
	body = append(body, `,"max_bytes":`...)
	body = strconv.AppendInt(body, max(pullBytes, 2*l.c.MaxPayload()), 10)
	body = append(body, `,"idle_heartbeat":`...)
	body = strconv.AppendInt(body, int64(l.heartbeat), 10)
	body = append(body, '}')
	l.heard = true // the silence counts from now
	l.transit.asked(time.Now())
	l.pulls++
	l.reply = l.inbox + "." + strconv.Itoa(l.pulls)
	if err := l.c.nc.PublishRequest(l.request, l.reply, body); err != nil {
		return l.broken(err)
	}
	return nil
}

// next waits for a message of any kind. Its errors end the line.
func (l *line) next(ctx context.Context, start time.Time) (*nats.Msg, error) {
	if m := l.waiting(); m != nil {
		return m, nil
	}
	for {
		refusal := l.c.denied.next()
		if l.c.denied.since(l.request, start) {
			return nil, &PermissionError{Operation: "publish", Subject: l.request, User: l.c.cfg.User}
		}
		select {
		case m := <-l.msgs:
			if l.arrived(m) {
				return m, nil
			}
		case <-refusal:
		case <-l.changed:
			return nil, fmt.Errorf("%w: the connection changed", ErrInterrupted)
		case <-l.silence.C:
			if !l.heard {
				return nil, fmt.Errorf("%w: no heartbeat for %s", ErrInterrupted, pullSilence)
			}
			l.heard = false
			l.silence.Reset(pullSilence)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// waiting gives a message that has already arrived, nil when there is none.
func (l *line) waiting() *nats.Msg {
	for {
		select {
		case m := <-l.msgs:
			if l.arrived(m) {
				return m
			}
		default:
			return nil
		}
	}
}

// drop ends the subscription and gives what the server had sent before it knew.
func (l *line) drop(each func(*nats.Msg)) {
	l.silence.Stop()
	deadline := time.NewTimer(2 * time.Second)
	defer deadline.Stop()
	gone := l.gone
	if l.sub.Drain() != nil {
		gone = nil
		deadline.Reset(0)
	}
	for {
		select {
		case m := <-l.msgs:
			if l.arrived(m) && !isStatus(m) {
				each(m)
			}
			continue
		default:
		}
		select {
		case m := <-l.msgs:
			if l.arrived(m) && !isStatus(m) {
				each(m)
			}
		case <-gone:
			// What arrived before the end is in the buffer by now.
			gone = nil
			deadline.Reset(0)
		case <-deadline.C:
			if len(l.msgs) == 0 {
				return
			}
			deadline.Reset(0)
		}
	}
}

// verdict is what a status message says about the pull that it answers.
type verdict struct {
	// ended: no more messages will come for this pull; left of them were not sent.
	ended bool
	left  int
	err   error
}

func isStatus(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header != nil && header(m.Header, "Status") != ""
}

// status reads a status message. The server's description tells 409s apart.
func (l *line) status(ctx context.Context, m *nats.Msg) verdict {
	code, description := header(m.Header, "Status"), header(m.Header, "Description")
	left, _ := strconv.Atoi(header(m.Header, "Nats-Pending-Messages"))
	switch {
	case code == "100":
		return verdict{}
	case code == "404", code == "408", code == "409" && (description == "Batch Completed" || description == "Message Size Exceeds MaxBytes"):
		return verdict{ended: true, left: left}
	case code == "503":
		return verdict{ended: true, err: l.absent(ctx)}
	case code == "409" && description == "Consumer Deleted":
		return verdict{ended: true, err: fmt.Errorf("%w: %s was deleted", ErrUnbound, l.consumer)}
	case code == "400":
		return verdict{ended: true, err: fmt.Errorf("the server refused a pull from %s: %s", l.consumer, description)}
	default:
		return verdict{ended: true, err: fmt.Errorf("%w: %s %s", ErrInterrupted, code, description)}
	}
}

// absent finds out why nobody answers a pull: the consumer is gone, or the server
// is not ready.
func (l *line) absent(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := l.c.consumerExists(ctx, l.request, l.consumer)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%w: %s", ErrUnbound, l.consumer)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrInterrupted, err)
	default:
		return fmt.Errorf("%w: nobody answers for %s yet", ErrInterrupted, l.consumer)
	}
}
