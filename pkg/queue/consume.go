package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// Consume gives the outcomes of one partition to handle, in batches of what has
// arrived, 256 at most, until ctx ends; then it returns the cause. handle is called
// by one goroutine, and owns the slice. An outcome that is not acked comes again
// after AckWait. What arrived but was not handled when ctx ended is given back at
// once. A missing consumer is made; a lost connection or a server without an answer
// is waited for, and logged once.
func (c *Conn) Consume(ctx context.Context, partition int, handle func([]call.Delivered)) error {
	if partition < 0 || partition >= c.cfg.Partitions {
		return fmt.Errorf("queue: partition %d of %d does not exist", partition, c.cfg.Partitions)
	}
	waits, logged := newBackOff(2*time.Second), false
	for {
		if err := c.awaitConnected(ctx); err != nil {
			return err
		}
		began := time.Now()
		err := c.consumeLine(ctx, partition, handle)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrClosed):
			return err
		case errors.Is(err, ErrUnbound):
			err = c.await(ctx, "make consumer "+resultDurable(partition), func(ctx context.Context) error {
				return c.makeResultDurable(ctx, partition)
			})
			if err == nil {
				continue
			}
		}
		if time.Since(began) > 2*pullExpires {
			waits.Reset()
			logged = false
		}
		if !logged && !errors.Is(err, ErrInterrupted) {
			logged = true
			c.log.Error("cannot consume outcomes; trying again", "partition", partition, "error", err)
		}
		if err := sleep(ctx, waits.NextBackOff()); err != nil {
			return err
		}
	}
}

// consumeLine consumes until something ends the line.
func (c *Conn) consumeLine(ctx context.Context, partition int, handle func([]call.Delivered)) error {
	l, err := c.openLine(Binding{Stream: c.names.results(), Consumer: resultDurable(partition)})
	if err != nil {
		return err
	}
	defer l.drop(func(m *nats.Msg) { _ = c.nc.Publish(m.Reply, nakBody) })
	outstanding := 0 // of the messages asked for
	for {
		if outstanding <= maxPull/2 {
			if err := l.ask(maxPull); err != nil {
				return err
			}
			outstanding += maxPull
		}
		m, err := l.next(ctx, time.Now())
		if err != nil {
			return err
		}
		if isStatus(m) {
			v := l.status(ctx, m)
			if v.err != nil {
				return v.err
			}
			outstanding = max(0, outstanding-v.left)
			continue
		}
		batch := []*nats.Msg{m}
		var status *nats.Msg
		for len(batch) < maxPull && status == nil {
			if m = l.waiting(); m == nil {
				break
			}
			if isStatus(m) {
				status = m
			} else {
				batch = append(batch, m)
			}
		}
		outstanding = max(0, outstanding-len(batch))
		handle(c.delivered(batch))
		if status != nil {
			v := l.status(ctx, status)
			if v.err != nil {
				return v.err
			}
			outstanding = max(0, outstanding-v.left)
		}
	}
}

// ackOnce acks one message, once.
type ackOnce struct {
	nc    *nats.Conn
	reply string
	done  atomic.Bool
}

func (a *ackOnce) ack() {
	if a.done.CompareAndSwap(false, true) {
		_ = a.nc.Publish(a.reply, ackBody) // a lost ack means one more delivery
	}
}

func (c *Conn) delivered(batch []*nats.Msg) []call.Delivered {
	out := make([]call.Delivered, len(batch))
	acks := make([]ackOnce, len(batch))
	for i, m := range batch {
		acks[i].nc, acks[i].reply = c.nc, m.Reply
		d := &out[i]
		d.Subject, d.Body, d.ID = m.Subject, m.Data, header(m.Header, headerMessageID)
		d.Deliveries, d.Ack = deliveries(m.Reply), acks[i].ack
		token, partition, ok := c.names.parseResult(m.Subject)
		d.Token = token
		d.Outcome, d.Invalid = decodeOutcome(m)
		switch {
		case d.Invalid != nil:
		case !ok:
			d.Invalid = fmt.Errorf("%q is not a result subject", m.Subject)
		case call.Partition(d.Outcome.Session, c.cfg.Partitions) != partition:
			d.Invalid = fmt.Errorf("session %q does not belong to partition %d", d.Outcome.Session, partition)
		}
	}
	return out
}
