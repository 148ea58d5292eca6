package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// maxSuspects bounds how many stuck calls one sweep finds; the next one finds more.
const maxSuspects = 1000

// floor is how far a pool's consumer has ended the messages of a subject.
type floor struct {
	consumer string
	upTo     uint64
}

// sweepCalls finds the calls that no consumer will hand out again although no notice of
// the server says so, and gives them up as if one did: those that reached their limit
// while the notice was lost, and those that a consumer passed before it took their
// function. Both are in the stream below what their consumer has ended.
//
// An acked call is there too until the server has removed it. So a call counts as stuck
// only when it was found for the length of a lease.
func (r *Registry) sweepCalls(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, advisoryAckWait/2)
	defer cancel()
	floors, highest, err := r.floors(ctx) // before the stream is looked at
	if err != nil {
		return err
	}
	stream, err := r.c.js.Stream(ctx, r.c.names.calls())
	if err != nil {
		return err
	}
	before := r.suspects
	r.suspects = map[uint64]time.Time{}
	if state := stream.CachedInfo().State; state.Msgs == 0 || state.FirstSeq > highest {
		return nil // which is the rule
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(r.c.names.call("*")))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		if f, ok := floors[subject]; ok {
			if err := r.sweepWaiting(ctx, stream, subject, f, before); err != nil {
				return fmt.Errorf("sweep %s: %w", subject, err)
			}
		}
	}
	return nil
}

// floors asks every pool's consumer.
func (r *Registry) floors(ctx context.Context) (floors map[string]floor, highest uint64, err error) {
	floors = map[string]floor{}
	for _, pool := range r.pools() {
		consumer, err := r.c.js.Consumer(ctx, r.c.names.calls(), poolDurable(pool))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		info := consumer.CachedInfo()
		f := floor{consumer: info.Name, upTo: info.AckFloor.Stream}
		if info.NumAckPending == 0 { // the floor itself rises only with the next ack
			f.upTo = max(f.upTo, info.Delivered.Stream)
		}
		for _, subject := range filtersOf(info.Config) {
			floors[subject] = f
		}
		highest = max(highest, f.upTo)
	}
	return floors, highest, nil
}

// sweepWaiting looks at the messages of a subject below its floor.
func (r *Registry) sweepWaiting(ctx context.Context, stream jetstream.Stream, subject string, f floor, before map[uint64]time.Time) error {
	for seq := uint64(1); len(r.suspects) < maxSuspects; {
		m, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil || m.Sequence > f.upTo {
			return err
		}
		since, known := before[m.Sequence]
		if !known {
			since = time.Now()
		}
		r.suspects[m.Sequence] = since
		if time.Since(since) >= r.c.cfg.AckWait {
			if err := r.unstick(ctx, stream, m, f.consumer); err != nil {
				return err
			}
		}
		seq = m.Sequence + 1
	}
	return nil
}

// unstick ends a stuck call. One that is answered is only removed.
func (r *Registry) unstick(ctx context.Context, stream jetstream.Stream, m *jetstream.RawStreamMsg, consumer string) error {
	g := &givenUp{Type: advisoryMaxDeliver, Stream: r.c.names.calls(), Consumer: consumer, StreamSeq: m.Sequence, swept: true}
	g.found(m)
	over, err := r.c.over(ctx, g)
	if err != nil {
		return err
	}
	var deleted bool
	if over {
		deleted, err = deleteMessage(ctx, stream, m.Sequence)
	} else {
		deleted, err = r.c.giveUp(ctx, stream, g, true)
	}
	if err != nil {
		return err
	}
	delete(r.suspects, m.Sequence)
	if deleted { // and not by another dispatcher
		r.repaired(RepairStuckCall, 1)
	}
	return nil
}

// over says whether the call is known to need no answer any more. Before look-ups are
// served none is.
func (c *Conn) over(ctx context.Context, g *givenUp) (bool, error) {
	answer := c.answer.Load()
	if answer == nil || (g.call.key == call.Key{}) {
		return false, nil
	}
	q := call.Question{Key: g.call.key, Token: lastToken(g.subject), Nonce: g.call.nonce, Handover: g.call.handover}
	standing, err := c.standing(ctx, q, *answer)
	if err != nil {
		return false, fmt.Errorf("how call %s stands: %w", g.call.key, err)
	}
	return standing == call.StandingAnswered || standing == call.StandingCancelled, nil
}
