package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// advisoryDurable is the consumer that all dispatchers share.
	advisoryDurable = "dispatchers"
	// advisoryBatch is how many notices a dispatcher takes at once.
	advisoryBatch   = 16
	advisoryAckWait = time.Minute
)

// ServeAdvisories works on what the server says about calls that it gave up, until
// ctx ends; then it returns the cause. Such a call was handed out as often as its
// consumer allows, or an executor ended it as unusable. It is kept as a dead letter,
// answered with a failure, and removed from the queue. All dispatchers share the
// work, and repeating it does no harm. Provision must have run.
//
// A terminated call leaves the stream at once. This package's Taken.Term names the
// call in its reason, so that it can be answered; one that was terminated in another
// way is answered by the dispatcher at its deadline.
func (c *Conn) ServeAdvisories(ctx context.Context) error {
	waits, logged := newBackOff(2*time.Second), false
	for {
		err := c.await(ctx, "make consumer "+advisoryDurable, c.makeAdvisoryDurable)
		if err == nil {
			err = c.takeAdvisories(ctx, func() { waits.Reset(); logged = false })
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrClosed), c.nc.IsClosed():
			return ErrClosed
		case !logged:
			logged = true
			c.log.Warn("cannot work on the server's notices about calls; trying again", "error", err)
		}
		if err := sleep(ctx, waits.NextBackOff()); err != nil {
			return err
		}
	}
}

func (c *Conn) makeAdvisoryDurable(ctx context.Context) error {
	_, err := c.js.CreateOrUpdateConsumer(ctx, c.names.advisory(), jetstream.ConsumerConfig{
		Durable: advisoryDurable, AckPolicy: jetstream.AckExplicitPolicy, AckWait: advisoryAckWait, MaxDeliver: -1,
	})
	return err
}

// takeAdvisories works on notices until something fails. worked is called when
// something did not.
func (c *Conn) takeAdvisories(ctx context.Context, worked func()) error {
	consumer, err := c.js.Consumer(ctx, c.names.advisory(), advisoryDurable)
	if err != nil {
		return err
	}
	for {
		batch, err := consumer.Fetch(advisoryBatch, jetstream.FetchContext(ctx))
		if err != nil {
			return err
		}
		var failed error
		for m := range batch.Messages() {
			if failed != nil || ctx.Err() != nil {
				_ = m.Nak() // for another dispatcher
				continue
			}
			if failed = c.workOff(ctx, m.Data()); failed != nil {
				_ = m.NakWithDelay(time.Second)
				continue
			}
			_ = m.Ack() // a lost ack means one more time
		}
		if err := errors.Join(failed, ctx.Err(), batch.Error()); err != nil {
			return err
		}
		worked()
	}
}

// workOff does what has to be done about a notice. Its errors are passing.
func (c *Conn) workOff(ctx context.Context, notice []byte) error {
	g, err := c.readGivenUp(notice)
	if err != nil {
		c.log.Error("a notice of the server is not readable", "error", err)
		return nil
	}
	if g.deleted() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, advisoryAckWait/2)
	defer cancel()
	stream, err := c.js.Stream(ctx, c.names.calls())
	if err != nil {
		return err
	}
	m, err := stream.GetMsg(ctx, g.StreamSeq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		if !g.terminated {
			return nil // answered, acked or expired meanwhile
		}
	case err != nil:
		return err
	default:
		g.found(m)
	}
	_, err = c.giveUp(ctx, stream, g, m != nil)
	return err
}

// giveUp keeps the call as a dead letter, answers it and removes it from its stream if it
// is there, and says whether it removed it. Repeating any part of that does no harm.
func (c *Conn) giveUp(ctx context.Context, stream jetstream.Stream, g *givenUp, there bool) (deleted bool, err error) {
	if err := c.Bury(ctx, g.letter()); err != nil {
		return false, err
	}
	answered, err := c.answerGivenUp(ctx, g)
	if err != nil {
		return false, err
	}
	if there {
		if deleted, err = deleteMessage(ctx, stream, g.StreamSeq); err != nil {
			return false, fmt.Errorf("remove call %d: %w", g.StreamSeq, err)
		}
	}
	c.log.Warn("a call was given up; it is among the dead letters", "reason", g.word(), "session_id", g.call.key.Session,
		"turn_id", g.call.key.Turn, "call_id", g.call.key.Call, "subject", g.subject, "deliveries", g.Deliveries, "answered", answered, "swept", g.swept)
	return deleted, nil
}
