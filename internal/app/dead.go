package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/pkg/queue"
)

// queueConn is the connection, or ops.ErrNotStarted.
func (s *state) queueConn() (*queue.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil || s.conn == nil {
		return nil, ops.ErrNotStarted
	}
	return s.conn, nil
}

// DeadLetters lists up to limit dead letters of a function, or of all when it is
// empty, the newest first, without their bodies. Before the start it fails with
// ops.ErrNotStarted, as its siblings do.
func (d *Dispatcher) DeadLetters(ctx context.Context, function string, limit int) ([]ops.DeadLetter, error) {
	conn, err := d.state.queueConn()
	if err != nil {
		return nil, err
	}
	letters, err := conn.DeadLetters(ctx, function, limit)
	if err != nil {
		return nil, err
	}
	list := make([]ops.DeadLetter, len(letters))
	for i, l := range letters {
		list[i] = deadLetter(l)
	}
	return list, nil
}

// DeadLetter shows a dead letter with its body. Errors wrap ops.ErrNoDeadLetter.
func (d *Dispatcher) DeadLetter(ctx context.Context, sequence uint64) (ops.DeadLetter, error) {
	conn, err := d.state.queueConn()
	if err != nil {
		return ops.DeadLetter{}, err
	}
	letter, err := conn.DeadLetter(ctx, sequence)
	if err != nil {
		return ops.DeadLetter{}, deadError(err)
	}
	shown := deadLetter(letter)
	shown.SetBody(letter.Body)
	return shown, nil
}

// DropDeadLetter deletes a dead letter. Errors wrap ops.ErrNoDeadLetter.
func (d *Dispatcher) DropDeadLetter(ctx context.Context, sequence uint64) error {
	conn, err := d.state.queueConn()
	if err != nil {
		return err
	}
	return deadError(conn.DropDeadLetter(ctx, sequence))
}

// ReplayDeadLetter publishes a refused outcome once more. Errors wrap
// ops.ErrNoDeadLetter, or ops.ErrNoReplay with the reason.
func (d *Dispatcher) ReplayDeadLetter(ctx context.Context, sequence uint64) error {
	conn, err := d.state.queueConn()
	if err != nil {
		return err
	}
	return deadError(conn.ReplayDeadLetter(ctx, sequence))
}

func deadLetter(l queue.DeadLetter) ops.DeadLetter {
	return ops.DeadLetter{
		Sequence: l.Sequence, Buried: l.Time, Function: functionOf(l.Token), Reason: l.Reason, Detail: l.Detail,
		Subject: l.Subject, Size: l.Size, Truncated: l.Truncated,
	}
}

// functionOf is the name that a token stands for, or the token where it does not tell.
func functionOf(token string) string {
	if encoded, ok := strings.CutPrefix(token, "="); ok {
		if name, err := base64.RawURLEncoding.DecodeString(encoded); err == nil {
			return string(name)
		}
	}
	return token
}

// translated is an error of the queue under a name that the admin API knows.
type translated struct {
	error
	as error
}

func (t translated) Unwrap() []error { return []error{t.error, t.as} }

// deadError gives the queue's errors the names that the admin API knows.
func deadError(err error) error {
	switch {
	case errors.Is(err, queue.ErrNoDeadLetter):
		return translated{err, ops.ErrNoDeadLetter}
	case errors.Is(err, queue.ErrNoReplay):
		return translated{err, ops.ErrNoReplay}
	case errors.Is(err, queue.ErrTooLarge):
		return translated{fmt.Errorf("raise the server's max_payload, then replay again: %w", err), ops.ErrNoReplay}
	}
	return err
}

// serveAdvisories answers the calls that the server gave up, until the dispatcher
// closes.
func (d *Dispatcher) serveAdvisories(ctx context.Context, conn *queue.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := conn.ServeAdvisories(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("calls that the server gives up are not answered any more", "error", err)
		}
	}()
	d.closes.push("advisories", func(within context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-within.Done():
			return within.Err()
		}
	})
}
