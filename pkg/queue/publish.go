package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// ackTimeout bounds the wait for one confirmation, before the message is sent again.
const ackTimeout = 5 * time.Second

// Publish stores hand-overs in the calls stream, in one burst, and returns when
// each is confirmed or has failed; the errors are in the order of the dispatches. It
// sets the Sequence of each that is stored.
// A hand-over that is already stored counts as success. When NATS does not answer,
// the message is sent again under the same id, for Config.RetryFor at most.
//
// ErrGone says that the hand-over was stored once and is not any more, so an executor
// ended it: nobody will be given it again, and its outcome is in the results stream or
// was taken from there.
//
// Errors wrap ErrInvalidFunction, ErrInvalidCall, ErrTooLarge, ErrBacklogFull or
// ErrPermission, all of which mean that nothing was stored, or ErrUnavailable or
// the cause of ctx's end, which leave that open.
func (c *Conn) Publish(ctx context.Context, dispatches []call.Dispatch) []error {
	errs := make([]error, len(dispatches))
	burst := make([]publication, 0, len(dispatches))
	earlier := make([]bool, len(dispatches))
	for i := range dispatches {
		msg, err := c.names.encodeCall(&dispatches[i])
		if err == nil {
			err = c.checkSize("call", msg)
		}
		if err != nil {
			errs[i] = err
			continue
		}
		burst = append(burst, publication{msg: msg, err: &errs[i], sequence: &dispatches[i].Sequence, earlier: &earlier[i], over: func(ctx context.Context) (bool, error) {
			d := &dispatches[i]
			select {
			case <-d.Over:
				return true, nil
			default:
			}
			return c.reported(ctx, call.Question{Key: d.Key, Token: call.Token(d.Function), Nonce: d.Nonce, Handover: d.Handover})
		}})
	}
	c.publishAll(ctx, "call", burst, false)
	for i, stored := range earlier {
		if stored && errs[i] == nil && c.ended(ctx, dispatches[i].Sequence) {
			errs[i] = ErrGone
		}
	}
	return errs
}

// ended says whether the call that was stored under the sequence number is certainly
// not in its stream any more.
func (c *Conn) ended(ctx context.Context, seq uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, c.names.calls())
	if err != nil {
		return false
	}
	_, err = stream.GetMsg(ctx, seq)
	return errors.Is(err, jetstream.ErrMsgNotFound)
}

func (c *Conn) checkSize(what string, msg *nats.Msg) error {
	if limit := c.nc.MaxPayload(); limit > 0 {
		if size := envelopeSize(msg); size > limit {
			return &TooLargeError{What: what, Size: size, Limit: limit}
		}
	}
	return nil
}

// publication is one message on its way; err is where its fate goes. sequence and
// earlier, when not nil, are where its number goes and whether it was stored before.
type publication struct {
	msg      *nats.Msg
	err      *error
	future   jetstream.PubAckFuture
	sequence *uint64
	earlier  *bool
	// over, when not nil, says whether an earlier try was stored and has come to its end.
	over func(context.Context) (bool, error)
}

// publishAll sends every message and waits for all confirmations. What failed for
// a passing reason is sent again, as long as RetryFor and ctx allow; with
// retryFull a full stream counts as a passing reason.
func (c *Conn) publishAll(ctx context.Context, what string, burst []publication, retryFull bool) {
	start := time.Now()
	var waits *backoff.ExponentialBackOff
	for len(burst) > 0 {
		if ctx.Err() != nil { // nothing is sent any more: who asked may know that it came too late
			for _, p := range burst {
				*p.err = fmt.Errorf("%w: %s: %w", ErrUnavailable, p.msg.Subject, context.Cause(ctx))
			}
			return
		}
		for i := range burst {
			p := &burst[i]
			p.future, *p.err = c.async.PublishMsgAsync(p.msg)
		}
		again := burst[:0]
		for _, p := range burst {
			if *p.err == nil {
				*p.err = c.awaitAck(ctx, p, start)
			}
			if *p.err != nil {
				raw := *p.err
				*p.err = c.publishError(what, p.msg, raw)
				if transient(raw) || (retryFull && errors.Is(*p.err, ErrBacklogFull)) {
					again = append(again, p)
				}
			}
		}
		burst = again
		if len(burst) == 0 {
			return
		}
		if waits == nil {
			waits = newBackOff(2 * time.Second)
		}
		wait := waits.NextBackOff()
		if time.Since(start)+wait > c.cfg.RetryFor {
			return
		}
		if err := sleep(ctx, wait); err != nil {
			for _, p := range burst {
				*p.err = fmt.Errorf("%w (%w)", *p.err, err)
			}
			return
		}
		burst = c.notOver(ctx, burst)
	}
}

// notOver leaves out what an earlier try has brought to its end without being confirmed: a server that was restarted since
// would not recognise it, and store it as a new one. What cannot be told is sent again.
func (c *Conn) notOver(ctx context.Context, burst []publication) []publication {
	left, silent := burst[:0], false
	for _, p := range burst {
		if p.over == nil || silent {
			left = append(left, p)
			continue
		}
		asking, cancel := context.WithTimeout(ctx, ackTimeout)
		over, err := p.over(asking)
		cancel()
		silent = err != nil
		if over {
			*p.err = ErrGone
			continue
		}
		left = append(left, p)
	}
	return left
}

// awaitAck waits for one confirmation. Every future ends by itself: by the
// confirmation, by its timeout, or by the loss of the connection.
func (c *Conn) awaitAck(ctx context.Context, p publication, start time.Time) error {
	stored, failed := p.future.Ok(), p.future.Err()
	for {
		refusal := c.denied.next()
		if c.denied.since(p.msg.Subject, start) {
			return &PermissionError{Operation: "publish", Subject: p.msg.Subject, User: c.cfg.User}
		}
		select {
		case ack := <-stored: // now or before
			if p.sequence != nil {
				*p.sequence, *p.earlier = ack.Sequence, ack.Duplicate
			}
			return nil
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-refusal:
		}
	}
}

// publishError gives the client's error its meaning for callers.
func (c *Conn) publishError(what string, msg *nats.Msg, err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && storageFull(api):
		return fmt.Errorf("%w: %s: %w", ErrBacklogFull, msg.Subject, err)
	case errors.Is(err, nats.ErrMaxPayload), errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return &TooLargeError{What: what, Size: envelopeSize(msg), Limit: c.nc.MaxPayload()}
	case c.nc.IsClosed(), errors.Is(err, nats.ErrConnectionDraining):
		return fmt.Errorf("%w: %s: %w", ErrClosed, msg.Subject, err)
	case transient(err):
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, msg.Subject, err)
	default:
		return fmt.Errorf("publish to %s: %w", msg.Subject, err)
	}
}
