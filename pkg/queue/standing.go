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

// maxOutcomesSearched bounds how many waiting outcomes of one function and partition
// are looked through for one question.
const maxOutcomesSearched = 2000

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
	stream, err := c.js.Stream(ctx, c.names.results())
	if err != nil {
		return false, err
	}
	subject := c.names.result(token, partition)
	next := uint64(1)
	for range maxOutcomesSearched {
		m, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if wanted(m) {
			return true, nil
		}
		next = m.Sequence + 1
	}
	return false, fmt.Errorf("more than %d outcomes wait on %s; asking again helps once they are saved", maxOutcomesSearched, subject)
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

// Reported says whether the results stream holds an outcome of the call, of any attempt
// and whoever has it at the moment; a call that was given back does not count.
func (c *Conn) Reported(ctx context.Context, d call.Dispatch) (bool, error) {
	token, err := functionToken(d.Function)
	if err != nil {
		return false, nil // nobody was ever given it
	}
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	found, err := c.searchOutcomes(ctx, token, call.Partition(d.Session, c.cfg.Partitions), func(m *jetstream.RawStreamMsg) bool {
		o, err := decodeOutcome(&nats.Msg{Header: m.Header, Data: m.Data})
		return err == nil && o.Key == d.Key && o.Kind != call.Released
	})
	if err != nil {
		return false, fmt.Errorf("look for an outcome of %s: %w", d.Key, err)
	}
	return found, nil
}
