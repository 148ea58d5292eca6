package kvstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// Claim records calls that are absent; see results.Store.
func (s *Store) Claim(ctx context.Context, fence uint64, claims []results.Claim) ([]results.Record, error) {
	claims = slices.Clone(claims) // the caller may leave early
	keys := make([]call.Key, len(claims))
	for i, c := range claims {
		if c.State != call.Seen && c.State != call.Held {
			return nil, fmt.Errorf("claim of %s: state %q; want seen or held", c.Key, c.State)
		}
		keys[i] = c.Key
	}
	answers := make([]answer, len(claims))
	turns := group(keys)
	refused := make([]bool, len(turns))
	err := s.each(ctx, len(turns), func(ctx context.Context, t int) error {
		return s.lanes.do(ctx, turns[t].id, func(e *edit) {
			if refused[t] = !e.enter(fence); refused[t] {
				return
			}
			for _, i := range turns[t].elements {
				answers[i] = e.answer(e.claim(fence, claims[i]))
			}
		})
	})
	if err != nil {
		return nil, err
	}
	for _, fenced := range refused {
		if fenced {
			return nil, results.ErrFenced
		}
	}
	return s.resolve(ctx, answers)
}

// Complete saves results; see results.Store.
func (s *Store) Complete(
	ctx context.Context, fences []uint64, completions []results.Completion,
) ([]results.Completed, error) {
	if len(fences) != len(completions) {
		return nil, fmt.Errorf("complete: %d fences for %d completions", len(fences), len(completions))
	}
	fences, completions = slices.Clone(fences), slices.Clone(completions) // the caller may leave early
	keys, bodies := make([]call.Key, len(completions)), make([]storedBody, len(completions))
	for i, c := range completions {
		keys[i], bodies[i] = c.Key, s.stored(c)
		completions[i].Result.Output = nil
	}
	completed := make([]results.Completed, len(completions))
	answers := make([]answer, len(completions))
	turns := group(keys)
	err := s.each(ctx, len(turns), func(ctx context.Context, t int) error {
		return s.lanes.do(ctx, turns[t].id, func(e *edit) {
			for _, i := range turns[t].elements {
				completed[i], answers[i] = results.Completed{}, answer{}
				if !e.enter(fences[i]) {
					completed[i].Err = results.ErrFenced
					continue
				}
				verdict, known := e.complete(fences[i], completions[i], bodies[i])
				completed[i].Verdict = verdict
				if known == nil {
					continue
				}
				answers[i] = e.answer(known)
				if verdict == results.Saved { // the caller has the result
					answers[i].body = ""
				}
			}
		})
	})
	if err != nil {
		return nil, err
	}
	records, err := s.resolve(ctx, answers)
	if err != nil {
		return nil, err
	}
	for i := range completed {
		completed[i].Record = records[i]
	}
	return completed, nil
}

// Move changes states; see results.Store.
func (s *Store) Move(ctx context.Context, fence uint64, moves []results.Move) ([]results.Moved, error) {
	moves = slices.Clone(moves) // the caller may leave early
	keys := make([]call.Key, len(moves))
	for i, m := range moves {
		if m.To == call.Absent || len(m.To.From()) == 0 {
			return nil, fmt.Errorf("move of %s: no call can enter the state %q", m.Key, m.To)
		}
		keys[i] = m.Key
	}
	moved := make([]results.Moved, len(moves))
	turns := group(keys)
	err := s.each(ctx, len(turns), func(ctx context.Context, t int) error {
		return s.lanes.do(ctx, turns[t].id, func(e *edit) {
			refused := !e.enter(fence)
			for _, i := range turns[t].elements {
				if refused {
					moved[i] = results.Moved{Err: results.ErrFenced}
					continue
				}
				moved[i] = e.move(moves[i])
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return moved, nil
}

// Get reads records; see results.Store.
func (s *Store) Get(ctx context.Context, keys []call.Key) ([]results.Record, error) {
	answers := make([]answer, len(keys))
	turns := group(keys)
	err := s.each(ctx, len(turns), func(ctx context.Context, t int) error {
		e, _, err := s.lanes.read(ctx, turns[t].id)
		if err != nil {
			return err
		}
		for _, i := range turns[t].elements {
			answers[i] = answer{record: results.Record{Key: keys[i]}}
			if known := e.index[keys[i].Call]; known != nil {
				answers[i] = e.full(known, e.now)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.resolve(ctx, answers)
}

// turnGroup is the elements of a request that belong to one turn.
type turnGroup struct {
	id       turnID
	elements []int
}

// group sorts the elements of a request into turns, in order of appearance.
func group(keys []call.Key) []*turnGroup {
	var groups []*turnGroup
	index := map[turnID]*turnGroup{}
	for i, k := range keys {
		g := index[idOf(k)]
		if g == nil {
			g = &turnGroup{id: idOf(k)}
			index[g.id] = g
			groups = append(groups, g)
		}
		g.elements = append(g.elements, i)
	}
	return groups
}
