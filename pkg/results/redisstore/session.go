package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// Session reads the records of a session, oldest first; see results.Store.
func (s *Store) Session(ctx context.Context, session string) ([]results.Record, error) {
	turns, err := s.client.ZRange(ctx, s.keys.turns(session), 0, -1).Result()
	if err != nil {
		return nil, explain(err)
	}
	operations := make([]*operation, len(turns))
	for i, turn := range turns {
		operations[i] = s.turnOperation(turnScript, session, turn)
	}
	if err := s.run(ctx, operations); err != nil {
		return nil, err
	}
	var records []results.Record
	for i, op := range operations {
		if records, err = appendTurn(records, session, turns[i], op.reply); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(records, func(a, b results.Record) int {
		return cmp.Or(a.ClaimedAt.Compare(b.ClaimedAt), cmp.Compare(a.Key.Turn, b.Key.Turn), cmp.Compare(a.Key.Call, b.Key.Call))
	})
	return records, nil
}

// appendTurn appends the records in an answer of turnScript. A turn that was
// forgotten in between has none.
func appendTurn(records []results.Record, session, turn string, reply any) ([]results.Record, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 3 {
		return nil, errReply
	}
	now, err := strconv.ParseInt(text(parts[0]), 10, 64)
	if err != nil {
		return nil, errReply
	}
	entries, err := pairs(parts[1])
	if err != nil {
		return nil, err
	}
	bodies, err := pairs(parts[2])
	if err != nil {
		return nil, err
	}
	for field, meta := range entries {
		if field[0] != ':' { // the turn's fence and count
			continue
		}
		key := call.Key{Session: session, Turn: turn, Call: field[1:]}
		r, err := record(key, meta, bodies[key.Call], now)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// pairs is an answer of HGETALL.
func pairs(value any) (map[string]any, error) {
	values, ok := value.([]any)
	if !ok || len(values)%2 != 0 {
		return nil, errReply
	}
	m := make(map[string]any, len(values)/2)
	for pair := range slices.Chunk(values, 2) {
		m[text(pair[0])] = pair[1]
	}
	return m, nil
}
