package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// ErrNoDeadLetter is wrapped by errors about a dead letter that is not there: it was
// dropped, or forgotten after Config.DeadMaxAge.
var ErrNoDeadLetter = errors.New("there is no such dead letter")

// DeadLetter is a dead letter as the stream keeps it.
type DeadLetter struct {
	call.DeadLetter

	// Sequence is its number, Time when it was buried.
	Sequence uint64
	Time     time.Time
	// Size is that of the body as it came, in bytes; the stream may hold less of it.
	Size int
	// Truncated says that the stream holds only the beginning of the body.
	Truncated bool
}

// headerSize is the header in which the server says how large a body is that it leaves out.
const headerSize = "Nats-Msg-Size"

// deadBatch is how many headers of dead letters are read at once.
const deadBatch = 256

// DeadLetters lists up to limit dead letters, the newest first, without their
// bodies. A function's name, when given, picks its own.
func (c *Conn) DeadLetters(ctx context.Context, function string, limit int) ([]DeadLetter, error) {
	if limit < 1 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, c.names.deads())
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	subject := c.names.dead("*")
	if function != "" {
		subject = c.names.dead(call.Token(function))
	}
	state := stream.CachedInfo().State
	first := max(state.FirstSeq, 1)
	// The newest are at the end: the window before it grows until it holds enough.
	for window := uint64(limit); ; window *= 8 { //nolint:gosec // positive
		start := first
		if state.LastSeq > first+window {
			start = state.LastSeq - window + 1
		}
		list, err := c.deadSince(ctx, stream, subject, start, limit)
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		if len(list) >= limit || start == first {
			slices.Reverse(list)
			return list, nil
		}
	}
}

// deadSince reads the headers of the letters from start on and gives the last ones.
func (c *Conn) deadSince(ctx context.Context, stream jetstream.Stream, subject string, start uint64, limit int) ([]DeadLetter, error) {
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject: subject, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: start,
		AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MemoryStorage: true, Replicas: 1, InactiveThreshold: 30 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.DeleteConsumer(context.WithoutCancel(ctx), consumer.CachedInfo().Name) }() // or it ends by itself
	var list []DeadLetter
	for left := consumer.CachedInfo().NumPending; left > 0; {
		batch, err := consumer.Fetch(int(min(left, deadBatch)), jetstream.FetchContext(ctx)) //nolint:gosec // bounded
		if err != nil {
			return nil, err
		}
		got := uint64(0)
		for m := range batch.Messages() {
			got++
			at, err := m.Metadata()
			if err != nil {
				return nil, err
			}
			list = append(list, c.readDead(m.Subject(), m.Headers(), at.Sequence.Stream, at.Timestamp))
		}
		if err := batch.Error(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if got == 0 { // dropped meanwhile
			break
		}
		left -= got
		list = list[max(0, len(list)-limit):]
	}
	return list, nil
}

// DeadLetter gives one dead letter with its body. Errors wrap ErrNoDeadLetter.
func (c *Conn) DeadLetter(ctx context.Context, sequence uint64) (DeadLetter, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, c.names.deads())
	if err != nil {
		return DeadLetter{}, fmt.Errorf("dead letter %d: %w", sequence, err)
	}
	m, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) || sequence == 0 {
		return DeadLetter{}, fmt.Errorf("%w: %d", ErrNoDeadLetter, sequence)
	}
	if err != nil {
		return DeadLetter{}, fmt.Errorf("dead letter %d: %w", sequence, err)
	}
	letter := c.readDead(m.Subject, m.Header, m.Sequence, m.Time)
	letter.Body = m.Data
	if !letter.Truncated {
		letter.Size = len(m.Data)
	}
	return letter, nil
}

// DropDeadLetter deletes a dead letter. Errors wrap ErrNoDeadLetter.
func (c *Conn) DropDeadLetter(ctx context.Context, sequence uint64) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, c.names.deads())
	if err != nil {
		return fmt.Errorf("drop dead letter %d: %w", sequence, err)
	}
	deleted, err := false, error(nil)
	if sequence > 0 {
		deleted, err = deleteMessage(ctx, stream, sequence)
	}
	if err != nil {
		return fmt.Errorf("drop dead letter %d: %w", sequence, err)
	}
	if !deleted {
		return fmt.Errorf("%w: %d", ErrNoDeadLetter, sequence)
	}
	return nil
}

// deleteMessage deletes one message of a stream and says whether it was there. The
// client hides why the server did not delete it, hence the second question.
func deleteMessage(ctx context.Context, stream jetstream.Stream, sequence uint64) (bool, error) {
	err := stream.DeleteMsg(ctx, sequence)
	if err == nil {
		return true, nil
	}
	if _, missing := stream.GetMsg(ctx, sequence); errors.Is(missing, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return false, err
}

// readDead reads what the headers say about a letter.
func (c *Conn) readDead(subject string, h nats.Header, sequence uint64, at time.Time) DeadLetter {
	letter := DeadLetter{Sequence: sequence, Time: at}
	if letter.Token = lastToken(subject); letter.Token == noToken {
		letter.Token = ""
	}
	letter.Reason, letter.Detail, letter.Subject = header(h, headerReason), header(h, headerDetail), header(h, headerSubject)
	letter.Size, _ = strconv.Atoi(header(h, headerSize))
	if whole := header(h, headerTruncated); whole != "" {
		letter.Truncated = true
		letter.Size, _ = strconv.Atoi(whole)
	}
	return letter
}
