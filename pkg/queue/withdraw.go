package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// Withdraw takes back a hand-over that no executor was given. True means that nobody
// got it and nobody will. False means that an executor may have it, or will: it was
// delivered, it is not in the queue any more, its Sequence is 0 because its publication
// did not tell, or no consumer is known that takes its function, or only one that is
// younger than the message, so that nobody can tell what became of it before.
//
// False can also mean that its consumer passed it while it was being withdrawn, whether
// with it or, since it was deleted just before, over it. Nobody is given it any more
// then: an executor that has it reports its outcome as ever, and otherwise the call's
// deadline answers it.
//
// An idle consumer with replicas takes a second or two to be sure of. An error leaves open
// what happened; the same question may be asked again.
func (c *Conn) Withdraw(ctx context.Context, d call.Dispatch) (bool, error) {
	if d.Sequence == 0 {
		return false, nil
	}
	token, err := functionToken(d.Function)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	w := withdrawal{c: c, sequence: d.Sequence, id: d.MessageID(), subject: c.names.call(token)}
	gone, err := w.run(ctx, token)
	if err != nil {
		return false, fmt.Errorf("withdraw %s: %w", d.Key, err)
	}
	return gone, nil
}

// withdrawal takes one message back.
type withdrawal struct {
	c        *Conn
	sequence uint64
	id       string
	subject  string
	// taker is the consumer that takes the function, since is when it was made.
	taker string
	since time.Time
}

func (w *withdrawal) run(ctx context.Context, token string) (bool, error) {
	stream, err := w.c.js.Stream(ctx, w.c.names.calls())
	if err != nil {
		return false, err
	}
	m, err := stream.GetMsg(ctx, w.sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil // acked, expired, or moved to another number
	}
	if err != nil {
		return false, err
	}
	if header(m.Header, headerMessageID) != w.id || m.Subject != w.subject {
		return false, nil // a stream that was made anew
	}
	if w.taker, err = w.c.takerOf(ctx, token); err != nil || w.taker == "" {
		return false, err
	}
	info, err := w.look(ctx)
	if err != nil || info == nil || !info.Created.Before(m.Time) {
		return false, err // an earlier consumer may have handed it out
	}
	w.since = info.Created
	if err := w.remove(ctx, stream); err != nil {
		return false, err
	}
	return w.settled(ctx)
}

// takerOf is the consumer that takes the function's calls, empty when none is known.
func (c *Conn) takerOf(ctx context.Context, token string) (string, error) {
	kv, err := c.js.KeyValue(ctx, c.names.bucket())
	if err != nil {
		return "", err
	}
	entry, err := kv.Get(ctx, functionKey(token))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	rec, err := parseRecord(entry)
	if err != nil || !rec.Bound {
		return "", err
	}
	return poolDurable(rec.Pool), nil
}

// look asks the consumer, and gives nil when it was or may have been given the message.
// Its cursor says so: it passes the messages of its filters in their order.
func (w *withdrawal) look(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	consumer, err := w.c.js.Consumer(ctx, w.c.names.calls(), w.taker)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, nil //nolint:nilnil // nothing can be told from it
	}
	if err != nil {
		return nil, err
	}
	info := consumer.CachedInfo()
	switch {
	case !slices.Contains(filtersOf(info.Config), w.subject), info.Delivered.Stream >= w.sequence:
		return nil, nil //nolint:nilnil // as above
	case !w.since.IsZero() && !info.Created.Equal(w.since):
		return nil, nil //nolint:nilnil // another one of this name
	}
	return info, nil
}

// remove deletes the message. That it is gone already is fine: an executor's ack comes
// after its delivery, which the consumer then tells.
func (w *withdrawal) remove(ctx context.Context, stream jetstream.Stream) error {
	waits := newBackOff(time.Second)
	for {
		_, err := deleteMessage(ctx, stream, w.sequence)
		if err == nil || !transient(err) {
			return err
		}
		if sleep(ctx, waits.NextBackOff()) != nil {
			return err
		}
	}
}

// How long it takes to be sure of a replicated consumer.
const (
	// settleApply is how long a server may take to apply what is replicated.
	settleApply = 25 * time.Millisecond
	// settlePause is the longest wait between two looks.
	settlePause = 250 * time.Millisecond
	// settleLimit bounds all of it.
	settleLimit = 5 * time.Second
)

// settled says whether the message, which is deleted, was given to nobody.
//
// A consumer without replicas reads a message and moves its cursor in one step, so one
// look after the deletion is exact. A replicated one replicates the move first, sends
// the message after that, and shows its cursor as it was replicated. A delivery that
// began before the deletion could so be under way unseen. It is through, or never will
// be, once a majority of the replicas has answered the leader after the deletion, since
// they answer in order: a busy consumer's do so at once, an idle one's every second.
func (w *withdrawal) settled(ctx context.Context) (bool, error) {
	deleted, pause := time.Now(), settleApply
	for sure := false; ; {
		asked := time.Now()
		info, err := w.look(ctx)
		switch {
		case err != nil && !transient(err):
			return false, err
		case err != nil: // no leader at the moment
			sure = false
		case info == nil:
			return false, nil
		case !replicated(info), sure:
			return true, nil
		default:
			sure = heardSince(info, asked.Sub(deleted))
		}
		if time.Since(deleted) > settleLimit {
			return false, nil
		}
		pause = min(2*pause, settlePause)
		if sure {
			pause = settleApply
		}
		if err := sleep(ctx, pause); err != nil {
			return false, err
		}
	}
}

func replicated(info *jetstream.ConsumerInfo) bool {
	return info.Cluster != nil && len(info.Cluster.Replicas) > 0
}

// heardSince says whether the leader and the replicas that it has heard from within
// that time are a majority.
func heardSince(info *jetstream.ConsumerInfo, within time.Duration) bool {
	heard := 1 // the leader itself
	for _, replica := range info.Cluster.Replicas {
		if !replica.Offline && replica.Active > 0 && replica.Active < within {
			heard++
		}
	}
	return 2*heard > len(info.Cluster.Replicas)+1
}
