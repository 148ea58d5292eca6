package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// maxSearched bounds how many waiting messages of one subject are looked through for
// one question.
const maxSearched = 2000

// standing is what answer says, unless the attempt's outcome is published and not yet
// saved: a dispatcher that died may hold it until its lease runs out, and then nobody
// has a record of it.
func (c *Conn) standing(ctx context.Context, q call.Question, answer func(context.Context, call.Question) (call.Standing, error)) (call.Standing, error) {
	standing, err := answer(ctx, q)
	undecided := standing == call.StandingPending || standing == call.StandingUnknown
	if err != nil || !undecided || !validNonce(q.Nonce) {
		return standing, err
	}
	reported, err := c.reported(ctx, q)
	if err != nil {
		return "", fmt.Errorf("look for an outcome of %s: %w", q.Key, err)
	}
	if reported {
		return call.StandingAnswered, nil
	}
	// One that was saved and left the stream between the two looks shows now.
	return answer(ctx, q)
}

// reported says whether the results stream holds an outcome of the attempt, or a release
// of the very hand-over that the question is about.
func (c *Conn) reported(ctx context.Context, q call.Question) (bool, error) {
	return c.searchOutcomes(ctx, q.Token, call.Partition(q.Session, c.cfg.Partitions), func(m *jetstream.RawStreamMsg) bool {
		return ofAttempt(header(m.Header, headerMessageID), q)
	})
}

// searchOutcomes says whether one of the outcomes that wait for a partition's dispatcher,
// or that it has, is the wanted one.
func (c *Conn) searchOutcomes(ctx context.Context, token string, partition int, wanted func(*jetstream.RawStreamMsg) bool) (bool, error) {
	sequence, err := c.search(ctx, c.names.results(), c.names.result(token, partition), wanted)
	return sequence != 0, err
}

// search gives the number of the first message on the subject that is wanted, 0 when
// none of them is.
func (c *Conn) search(ctx context.Context, name, subject string, wanted func(*jetstream.RawStreamMsg) bool) (uint64, error) {
	stream, err := c.js.Stream(ctx, name)
	if err != nil {
		return 0, err
	}
	next := uint64(1)
	for range maxSearched {
		m, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if wanted(m) {
			return m.Sequence, nil
		}
		next = m.Sequence + 1
	}
	return 0, fmt.Errorf("more than %d messages wait on %s; asking again helps once they are fewer", maxSearched, subject)
}

// ofAttempt says whether the message id is that of an outcome which ends the attempt or
// hand-over that is asked about. A release ends only its own hand-over, and the next one
// has the same nonce.
func ofAttempt(id string, q call.Question) bool {
	kind, ok := strings.CutPrefix(id, q.Nonce+".")
	if !ok {
		return false
	}
	if call.Kind(kind) == call.Released || strings.HasPrefix(kind, string(call.Released)+".") {
		return q.Handover > 0 && id == call.Outcome{Nonce: q.Nonce}.ReleaseID(q.Handover)
	}
	return true
}

// Reported says whether the results stream holds an outcome of the call that counts, of
// any attempt and whoever has it at the moment.
func (c *Conn) Reported(ctx context.Context, d call.Dispatch, counts func(call.Outcome) bool) (bool, error) {
	token, err := functionToken(d.Function)
	if err != nil {
		return false, nil // nobody was ever given it
	}
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	found, err := c.searchOutcomes(ctx, token, call.Partition(d.Session, c.cfg.Partitions), func(m *jetstream.RawStreamMsg) bool {
		o, err := decodeOutcome(&nats.Msg{Header: m.Header, Data: m.Data})
		return err == nil && o.Key == d.Key && counts(o)
	})
	if err != nil {
		return false, fmt.Errorf("look for an outcome of %s: %w", d.Key, err)
	}
	return found, nil
}

// Stored is the number under which a hand-over of the call lies in the calls stream,
// whether an executor has it or not; 0 when there is none.
func (c *Conn) Stored(ctx context.Context, d call.Dispatch) (uint64, error) {
	token, err := functionToken(d.Function)
	if err != nil {
		return 0, nil // it cannot be handed over
	}
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	key := d.Key.String()
	sequence, err := c.search(ctx, c.names.calls(), c.names.call(token), func(m *jetstream.RawStreamMsg) bool {
		return header(m.Header, headerKey) == key
	})
	if err != nil {
		return 0, fmt.Errorf("look for a hand-over of %s: %w", d.Key, err)
	}
	return sequence, nil
}
