package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// The reasons of dead letters that this package buries itself or knows.
const (
	// DeadOrphan: a message on a result subject that no partition takes.
	DeadOrphan = "orphan"
	// DeadMaxDeliveries: a call that was handed out as often as its consumer allows,
	// and never acked.
	DeadMaxDeliveries = "max_deliveries"
	// DeadTerminated: a call that an executor ended as unusable.
	DeadTerminated = "terminated"
	// DeadLateResult: a result that came after its call had another one or had ended,
	// kept as evidence. Dispatchers bury it.
	DeadLateResult = "late_result"
)

// ErrNoReplay is wrapped by a *NoReplayError.
var ErrNoReplay = errors.New("this dead letter cannot be replayed")

// NoReplayError says why a dead letter cannot be replayed, and what to do instead.
type NoReplayError struct {
	Sequence uint64
	// Cause says why, and Remedy what to do.
	Cause, Remedy string
}

// Error is cause and remedy.
func (e *NoReplayError) Error() string {
	return fmt.Sprintf("dead letter %d cannot be replayed: %s; %s", e.Sequence, e.Cause, e.Remedy)
}

// Unwrap makes errors.Is(err, ErrNoReplay) true.
func (e *NoReplayError) Unwrap() error { return ErrNoReplay }

// ReplayDeadLetter publishes an outcome that was refused once more, as it was, on
// its subject: for when the cause of the refusal was mended. It is checked like any
// other outcome and buried again when the cause is still there. Its message id is a
// new one, so that no duplicate window swallows it, and it says nothing about its
// protocol, which then counts as the dispatcher's own. The letter stays until it is
// dropped.
//
// Errors wrap ErrNoDeadLetter, or ErrNoReplay for everything that is no outcome of
// this installation, or say why NATS did not store it.
func (c *Conn) ReplayDeadLetter(ctx context.Context, sequence uint64) error {
	letter, err := c.DeadLetter(ctx, sequence)
	if err != nil {
		return err
	}
	if err := c.replayable(letter); err != nil {
		return err
	}
	h := newHeaderSet(1)
	h.add(headerMessageID, fmt.Sprintf("dead.%d.%s", sequence, rand.Text()))
	msg := &nats.Msg{Subject: letter.Subject, Header: h.header, Data: letter.Body}
	if err := c.checkSize("outcome", msg); err != nil {
		return err
	}
	c.publishAll(ctx, "replayed outcome", []publication{{msg: msg, err: &err}}, false)
	return err
}

// replayable says why a letter cannot be replayed. Its subject decides rather than
// its reason: whatever came on a partition's subject can come there again.
func (c *Conn) replayable(letter DeadLetter) error {
	cause, remedy := "nothing reads what it was", "look at its body, then drop it"
	token, partition, ok := c.names.parseResult(letter.Subject)
	switch {
	case letter.Reason == DeadMaxDeliveries, letter.Reason == DeadTerminated:
		cause = "the call was answered with an error, or left to an operator, when it was given up, and running it again could double its effect"
		remedy = "mend the executor and ask again in the session; then drop it"
	case letter.Reason == DeadLateResult:
		cause = "its call was answered before this result came, and a result is never replaced"
		remedy = "compare it with what the session was told, ask again in the session if need be; then drop it"
	case letter.Reason == call.ReasonRefused:
		cause = "the API refused this result for good, and the session was sent an error in its place (ADR 0007)"
		remedy = "mend the function's output and ask again in the session; then drop it"
	case !ok || token == "" || partition >= c.cfg.Partitions:
		if letter.Subject != "" {
			cause = fmt.Sprintf("no dispatcher reads %s", letter.Subject)
		}
	case letter.Truncated:
		cause = fmt.Sprintf("only the beginning of its %d bytes was kept", letter.Size)
		remedy = "have the executor report the outcome again, or drop it"
	default:
		return nil
	}
	return &NoReplayError{Sequence: letter.Sequence, Cause: cause, Remedy: remedy}
}
