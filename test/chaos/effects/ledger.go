//go:build unix

package effects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrBarred ends a run that was declared not done meanwhile, by a verify handler or by an operator.
var ErrBarred = errors.New("it was said that this run did not act, so it must not")

// Ledger is the record of one function, and plays the part of its downstream.
type Ledger struct {
	// File is the path, see [File].
	File string
}

// Note adds a line about an event.
func (l Ledger) Note(event Event, line Line) error {
	line.Event = event
	return Append(l.File, line)
}

// Once acts unless the key is in the ledger already, as a downstream that knows idempotency keys does.
func (l Ledger) Once(ctx context.Context, line Line) error {
	return l.locked(ctx, func(lines []Line) error {
		if acted(lines, line) {
			return nil
		}
		return l.Note(Done, line)
	})
}

// UnlessBarred acts unless a barrier was set after this run started, or an operator decided about its attempt. It does
// not look for an earlier effect: that the call is not run again is callfan's promise.
func (l Ledger) UnlessBarred(ctx context.Context, line Line) error {
	return l.locked(ctx, func(lines []Line) error {
		started := false
		for _, other := range lines {
			switch {
			case other.Run == line.Run:
				started = true
			case started && other.Event == Barrier && other.IdempotencyKey == line.IdempotencyKey:
				return ErrBarred
			case other.Event == Decided && other.Key == line.Key && other.Attempt >= line.Attempt:
				return ErrBarred
			}
		}
		return l.Note(Done, line)
	})
}

// DoneOrBar says whether the call acted, and sets a barrier when it did not.
func (l Ledger) DoneOrBar(ctx context.Context, line Line) (done bool, err error) {
	err = l.locked(ctx, func(lines []Line) error {
		if done = acted(lines, line); done {
			return nil
		}
		return l.Note(Barrier, line)
	})
	return done, err
}

// Decide says for an operator whether the call acted, and under which number. When it did not, no run of this attempt or
// an earlier one will.
func (l Ledger) Decide(ctx context.Context, key string, attempt int) (number string, done bool, err error) {
	err = l.locked(ctx, func(lines []Line) error {
		for _, other := range lines {
			if other.Event == Done && other.Key == key {
				number, done = other.Number, true
				return nil
			}
		}
		return l.Note(Decided, Line{Key: key, Attempt: attempt})
	})
	return number, done, err
}

func acted(lines []Line, line Line) bool {
	for _, other := range lines {
		if other.Event == Done && other.IdempotencyKey == line.IdempotencyKey {
			return true
		}
	}
	return false
}

// locked runs f with the lines of the ledger, alone among all processes.
func (l Ledger) locked(ctx context.Context, f func([]Line) error) error {
	lock, err := os.OpenFile(l.File+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks, as the death of this process does
	// Asked again and again, since a frozen process may hold the lock for long.
	for syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if err := Wait(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the ledger: %w", err)
		}
	}
	lines, err := Read(l.File)
	if err != nil {
		return err
	}
	return f(lines)
}

// Wait lets d pass, or gives the cause of ctx's end.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
