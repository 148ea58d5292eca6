package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
)

// Puller pulls calls from a pool's durable consumer. It is safe for concurrent
// use: pulls may run side by side.
type Puller struct {
	c       *Conn
	binding Binding

	mu    sync.Mutex
	idle  []*line
	waits *backoff.ExponentialBackOff
}

// Bind checks that the binding's consumer exists and may be used, and gives a
// puller for it. ErrUnbound means that it does not exist: register first.
func (c *Conn) Bind(ctx context.Context, b Binding) (*Puller, error) {
	p := &Puller{c: c, binding: b, waits: newBackOff(2 * time.Second)}
	request := c.cfg.APIPrefix + ".CONSUMER.MSG.NEXT." + b.Stream + "." + b.Consumer
	probe := func(ctx context.Context) error { return c.consumerExists(ctx, request, b.Consumer) }
	if err := c.await(ctx, "bind to "+b.Consumer, probe); err != nil {
		return nil, err
	}
	c.setProbe(probe)
	return p, nil
}

// consumerExists asks for the consumer's info, which least privilege allows.
func (c *Conn) consumerExists(ctx context.Context, request, consumer string) error {
	subject := strings.Replace(request, ".CONSUMER.MSG.NEXT.", ".CONSUMER.INFO.", 1)
	reply, err := c.request(ctx, subject, nil)
	if err != nil {
		return err
	}
	return apiError(reply, consumer)
}

// Pull asks for up to n calls, 256 at most, and calls each for every one as it
// arrives. It returns nil once all have come or 10 s have passed. When ctx ends
// first, the pull is taken back, each still sees what was already on its way, and
// the cause of ctx's end is returned.
//
// Other errors wrap ErrInterrupted (pull again; it paces itself), ErrUnbound
// (register again), ErrPermission or ErrClosed. each must not block for long: the
// leases of the calls behind it are running.
func (p *Puller) Pull(ctx context.Context, n int, each func(*Taken)) error {
	if n < 1 {
		return nil
	}
	if err := p.c.awaitConnected(ctx); err != nil {
		return err
	}
	err := p.pull(ctx, min(n, maxPull), each)
	if err == nil || ctx.Err() != nil {
		p.mu.Lock()
		p.waits.Reset()
		p.mu.Unlock()
		return err
	}
	p.mu.Lock()
	wait := p.waits.NextBackOff()
	p.mu.Unlock()
	_ = sleep(ctx, wait)
	return err
}

func (p *Puller) pull(ctx context.Context, n int, each func(*Taken)) error {
	l, err := p.takeLine()
	if err != nil {
		return err
	}
	deliver := func(m *nats.Msg) {
		t := p.c.taken(m)
		t.Transit = l.transit.longest
		each(t)
	}
	start := time.Now()
	if err = l.ask(n); err == nil {
		err = p.read(ctx, l, n, start, deliver)
	}
	if err != nil {
		l.drop(deliver)
		return err
	}
	p.mu.Lock()
	p.idle = append(p.idle, l)
	p.mu.Unlock()
	return nil
}

// read delivers up to n messages and returns nil when the pull ended in order. Messages
// that do not come after the pull's end are an interruption.
func (p *Puller) read(ctx context.Context, l *line, n int, start time.Time, deliver func(*nats.Msg)) error {
	for n > 0 {
		m, err := l.next(ctx, start)
		if err != nil {
			return err
		}
		if !isStatus(m) {
			deliver(m)
			n--
			continue
		}
		if m.Subject != l.reply { // about an earlier pull
			continue
		}
		v := l.status(ctx, m)
		if v.err != nil {
			return v.err
		}
		if v.ended {
			// A replicated consumer sends this at once, and messages only after they were
			// replicated: those that the server counts as sent are still on their way. Left
			// behind, they would lie in the line while their leases run out.
			n -= v.left
		}
	}
	return nil
}

func (p *Puller) takeLine() (*line, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		l := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if l.usable() {
			return l, nil
		}
		_ = l.sub.Unsubscribe()
	}
	return p.c.openLine(p.binding)
}

// usable says that nothing happened to the connection since the line was opened.
func (l *line) usable() bool {
	select {
	case <-l.changed:
		return false
	default:
		l.silence.Reset(pullSilence)
		return l.sub.IsValid()
	}
}

// Close ends the puller's idle subscriptions. Pulls that run are not touched.
func (p *Puller) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.idle {
		_ = l.sub.Unsubscribe()
	}
	p.idle = nil
}

// Binding is the binding that the puller serves.
func (p *Puller) Binding() Binding { return p.binding }

func (c *Conn) taken(m *nats.Msg) *Taken {
	t := &Taken{Deliveries: deliveries(m.Reply), Subject: m.Subject, Body: m.Data, nc: c.nc, reply: m.Reply, header: m.Header}
	var err error
	if t.Dispatch, err = c.names.decodeCall(m); err != nil {
		t.Invalid = fmt.Errorf("%w: %w", ErrInvalidCall, err)
	}
	return t
}

// request is a core request that tells a refused subject from silence.
func (c *Conn) request(ctx context.Context, subject string, body []byte) ([]byte, error) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := c.onDenial(subject, start, cancel)
	defer stop()
	reply, err := c.nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		if denied, ok := errors.AsType[*PermissionError](context.Cause(ctx)); ok {
			return nil, denied
		}
		return nil, err
	}
	return reply.Data, nil
}
