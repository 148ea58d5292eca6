//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/callfan/callfan/test/chaos/effects"
)

// errBarred ends a run that a verify handler has declared not done meanwhile.
var errBarred = errors.New("a verify handler said that this run did not act, so it must not")

// ledger is the record of one function, and plays the part of its downstream.
type ledger struct{ file string }

func (l ledger) note(event effects.Event, line effects.Line) error {
	line.Event = event
	return effects.Append(l.file, line)
}

// once acts unless the key is in the ledger already, as a downstream that knows idempotency keys does.
func (l ledger) once(ctx context.Context, line effects.Line) error {
	return l.locked(ctx, func(lines []effects.Line) error {
		if acted(lines, line) {
			return nil
		}
		return l.note(effects.Done, line)
	})
}

// unlessBarred acts unless a barrier was set after this run started. It does not look for an earlier effect: that the
// call is not run again is callfan's promise.
func (l ledger) unlessBarred(ctx context.Context, line effects.Line) error {
	return l.locked(ctx, func(lines []effects.Line) error {
		started := false
		for _, other := range lines {
			switch {
			case other.Run == line.Run:
				started = true
			case started && other.Event == effects.Barrier && other.IdempotencyKey == line.IdempotencyKey:
				return errBarred
			}
		}
		return l.note(effects.Done, line)
	})
}

// doneOrBar says whether the call acted, and sets a barrier when it did not.
func (l ledger) doneOrBar(ctx context.Context, line effects.Line) (done bool, err error) {
	err = l.locked(ctx, func(lines []effects.Line) error {
		if done = acted(lines, line); done {
			return nil
		}
		return l.note(effects.Barrier, line)
	})
	return done, err
}

func acted(lines []effects.Line, line effects.Line) bool {
	for _, other := range lines {
		if other.Event == effects.Done && other.IdempotencyKey == line.IdempotencyKey {
			return true
		}
	}
	return false
}

// locked runs f with the lines of the ledger, alone among all processes.
func (l ledger) locked(ctx context.Context, f func([]effects.Line) error) error {
	lock, err := os.OpenFile(l.file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks, as the death of this process does
	// Asked again and again, since a frozen process may hold the lock for long.
	for syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the ledger: %w", err)
		}
	}
	lines, err := effects.Read(l.file)
	if err != nil {
		return err
	}
	return f(lines)
}
