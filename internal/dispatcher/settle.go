package dispatcher

import (
	"context"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// moveDelay is how long a move that nothing waits for is held back, so that the
// usual pair "submitted, settled" of a whole turn costs one round trip.
const moveDelay = 20 * time.Millisecond

// moveQueue holds the moves that are yet to be stored: at most one a call, since a
// later state replaces an earlier one.
type moveQueue struct {
	running bool
	since   time.Time
	notYet  time.Time
	backoff *backoff.ExponentialBackOff
	order   []call.Key
	pending map[call.Key]pendingMove
}

type pendingMove struct {
	results.Move
	// acks are the messages that the move makes superfluous.
	acks []func()
}

func (q *moveQueue) empty() bool { return !q.running && len(q.order) == 0 }

func (q *moveQueue) add(m results.Move, acks []func(), now time.Time) {
	if q.pending == nil {
		q.pending = map[call.Key]pendingMove{}
	}
	if len(q.order) == 0 {
		q.since = now
	}
	old, ok := q.pending[m.Key]
	if !ok {
		q.order = append(q.order, m.Key)
	}
	q.pending[m.Key] = pendingMove{m, append(old.acks, acks...)}
}

// forget drops what is pending of a call that is about to be recorded as further. Moves
// that end a call are never followed by another.
func (q *moveQueue) forget(key call.Key) {
	if m, ok := q.pending[key]; ok && len(m.acks) == 0 {
		delete(q.pending, key)
		q.order = slices.DeleteFunc(q.order, func(k call.Key) bool { return k == key })
	}
}

// has says that something about the call is to be stored or being stored.
func (q *moveQueue) has(key call.Key) bool {
	_, ok := q.pending[key]
	return ok || q.running
}

// take empties the queue.
func (q *moveQueue) take() []pendingMove {
	moves := make([]pendingMove, len(q.order))
	for i, k := range q.order {
		moves[i] = q.pending[k]
	}
	q.order, q.pending = nil, nil
	return moves
}

// finish ends a call.
func (s *session) finish(t *tracked, to call.State, reason string, now time.Time) {
	s.enter(t, to, reason, now)
	s.moves.add(results.Move{Key: t.Key, To: to}, append(t.kept(), t.releases...), now)
	t.releases, t.result, t.Arguments = nil, nil, nil
	delete(s.calls, t.Key)
}

// stepMoves stores the moves that are due.
func (s *session) stepMoves(_ context.Context, now time.Time) time.Time {
	q := &s.moves
	if q.running || len(q.order) == 0 {
		return time.Time{}
	}
	due := q.since.Add(moveDelay)
	if q.notYet.After(due) {
		due = q.notYet
	}
	if now.Before(due) {
		return due
	}
	q.running = true
	moves := q.take()
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.work, requestTimeout)
		defer cancel()
		err := s.store(ctx, moves)
		return func() { s.stored(moves, err) }
	})
	return time.Time{}
}

// store makes the moves and then lets go of the messages that they make superfluous.
func (s *session) store(ctx context.Context, moves []pendingMove) error {
	asked := make([]results.Move, len(moves))
	for i, m := range moves {
		asked[i] = m.Move
	}
	moved, err := s.d.store.Move(ctx, s.p.fence, asked)
	if err != nil {
		return err
	}
	for i, m := range moved {
		if m.Err != nil {
			err = m.Err
			continue
		}
		// Not done means that the call is further, or that the store lost it. Either
		// way the API has the result, and nothing is left to do.
		for _, ack := range moves[i].acks {
			ack()
		}
	}
	return err
}

func (s *session) stored(moves []pendingMove, err error) {
	s.moves.running = false
	if err == nil {
		s.moves.backoff.Reset()
		s.recovered(troubleMove)
		return
	}
	if fenced(err) {
		s.p.lost()
		return
	}
	s.fault(troubleMove, err)
	now := time.Now()
	s.moves.notYet = now.Add(s.moves.backoff.NextBackOff())
	newer := s.moves.take()
	for _, m := range append(moves, newer...) {
		s.moves.add(m.Move, m.acks, now)
	}
}

// flushMoves stores what is left, at the end.
func (s *session) flushMoves(ctx context.Context) {
	if moves := s.moves.take(); len(moves) > 0 {
		if err := s.store(ctx, moves); err != nil {
			s.log.Warn("in trouble", "trouble", troubleMove, "error", err)
		}
	}
}
