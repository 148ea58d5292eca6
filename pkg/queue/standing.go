package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	stream, err := c.js.Stream(ctx, c.names.results())
	if err != nil {
		return false, err
	}
	subject := c.names.result(q.Token, call.Partition(q.Session, c.cfg.Partitions))
	next := uint64(1)
	for range maxOutcomesSearched {
		m, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if ofAttempt(header(m.Header, headerMessageID), q) {
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
