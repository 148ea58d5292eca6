package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/internal/body"
	"github.com/callfan/callfan/pkg/results/internal/history"
)

// Claim records calls that are absent; see results.Store.
func (s *Store) Claim(ctx context.Context, fence uint64, claims []results.Claim) ([]results.Record, error) {
	turns := s.grouping(claimScript)
	for i, c := range claims {
		if c.State != call.Seen && c.State != call.Held {
			return nil, fmt.Errorf("claim of %s: state %q; want seen or held", c.Key, c.State)
		}
		turns.add(i, c.Key, fence, 0, c.Key.Call, onOneLine(c.Function), letters[c.State])
	}
	if err := s.share(ctx, turns.operations()); err != nil {
		return nil, err
	}
	answers := make([]results.Record, len(claims))
	var errs error
	for _, turn := range turns.groups {
		if turn.operation.fenced() {
			errs = results.ErrFenced
			continue
		}
		now, values, err := turn.operation.rows(len(turn.elements), 2)
		if err != nil {
			return nil, err
		}
		for row, i := range turn.elements {
			if answers[i], err = record(claims[i].Key, values[row*2], values[row*2+1], now); err != nil {
				return nil, err
			}
		}
	}
	if errs != nil {
		return nil, errs
	}
	return answers, nil
}

// Complete saves results; see results.Store.
func (s *Store) Complete(
	ctx context.Context, fences []uint64, completions []results.Completion,
) ([]results.Completed, error) {
	if len(fences) != len(completions) {
		return nil, fmt.Errorf("complete: %d fences for %d completions", len(fences), len(completions))
	}
	turns := s.grouping(completeScript)
	for i, c := range completions {
		state, adopt := letters[call.Failed], ""
		if c.Result.Success {
			state = letters[call.Succeeded]
		}
		if c.Adopt {
			adopt = "1"
		}
		stored := body.Append(nil, c.Result)
		turns.add(i, c.Key, fences[i], len(stored),
			c.Key.Call, onOneLine(c.Function), state, onOneLine(c.OutcomeID), strconv.Itoa(c.Attempt), adopt, stored,
			history.Note(c.Note))
	}
	if err := s.share(ctx, turns.operations()); err != nil {
		return nil, err
	}
	answers := make([]results.Completed, len(completions))
	for _, turn := range turns.groups {
		if turn.operation.fenced() {
			for _, i := range turn.elements {
				answers[i].Err = results.ErrFenced
			}
			continue
		}
		now, values, err := turn.operation.rows(len(turn.elements), 3)
		if err != nil {
			return nil, err
		}
		for row, i := range turn.elements {
			if answers[i], err = completed(completions[i].Key, values[row*3:row*3+3], now); err != nil {
				return nil, err
			}
		}
	}
	return answers, nil
}

func completed(key call.Key, row []any, now int64) (results.Completed, error) {
	verdict := map[string]results.Verdict{"S": results.Saved, "X": results.Superseded, "-": results.Unknown}[text(row[0])]
	switch verdict {
	case 0:
		return results.Completed{}, errReply
	case results.Unknown:
		return results.Completed{Verdict: verdict}, nil
	}
	r, err := record(key, row[1], row[2], now)
	return results.Completed{Verdict: verdict, Record: r}, err
}

// Move changes states; see results.Store.
func (s *Store) Move(ctx context.Context, fence uint64, moves []results.Move) ([]results.Moved, error) {
	turns := s.grouping(moveScript)
	for i, m := range moves {
		to, ok := letters[m.To]
		if !ok {
			return nil, fmt.Errorf("move of %s: no call can enter the state %q", m.Key, m.To)
		}
		turns.add(i, m.Key, fence, 0,
			m.Key.Call, to, entrances(m.To), strconv.Itoa(m.Attempt), strconv.Itoa(m.Handover), history.Note(m.Note))
	}
	if err := s.share(ctx, turns.operations()); err != nil {
		return nil, err
	}
	answers := make([]results.Moved, len(moves))
	for _, turn := range turns.groups {
		if turn.operation.fenced() {
			for _, i := range turn.elements {
				answers[i].Err = results.ErrFenced
			}
			continue
		}
		rows, err := texts(turn.operation.reply)
		if err != nil || len(rows) != len(turn.elements) {
			return nil, errReply
		}
		for row, i := range turn.elements {
			done, letter := rows[row][0] == '1', rows[row][1:]
			answers[i] = results.Moved{Done: done, State: history.States[letter]}
		}
	}
	return answers, nil
}

// entrances are the letters of the states from which a move may enter a state.
// Only Claim and Complete make records, and only Complete saves results.
func entrances(to call.State) string {
	if to == call.Succeeded || to == call.Failed {
		return ""
	}
	var b strings.Builder
	for _, from := range to.From() {
		b.WriteString(letters[from])
	}
	return b.String()
}

// Get reads records; see results.Store.
func (s *Store) Get(ctx context.Context, keys []call.Key) ([]results.Record, error) {
	type turnKey struct{ session, turn string }
	var operations []*operation
	var elements [][]int
	index := map[turnKey]int{}
	for i, key := range keys {
		at, ok := index[turnKey{key.Session, key.Turn}]
		if !ok {
			at = len(operations)
			index[turnKey{key.Session, key.Turn}] = at
			operations = append(operations, s.turnOperation(readScript, key.Session, key.Turn))
			elements = append(elements, nil)
		}
		operations[at].args = append(operations[at].args, key.Call)
		elements[at] = append(elements[at], i)
	}
	if err := s.run(ctx, operations); err != nil {
		return nil, err
	}
	answers := make([]results.Record, len(keys))
	for at, op := range operations {
		now, values, err := op.rows(len(elements[at]), 2)
		if err != nil {
			return nil, err
		}
		for row, i := range elements[at] {
			if answers[i], err = record(keys[i], values[row*2], values[row*2+1], now); err != nil {
				return nil, err
			}
		}
	}
	return answers, nil
}
