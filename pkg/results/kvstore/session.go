package kvstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/callfan/callfan/pkg/results"
)

// Session reads the records of a session, oldest first; see results.Store.
func (s *Store) Session(ctx context.Context, session string) ([]results.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, err := s.bucket.list(ctx, "t."+hash(session)+".*")
	if err != nil {
		return nil, err
	}
	now, err := s.clock.now(ctx)
	if err != nil {
		return nil, err
	}
	var answers []answer
	for _, value := range values {
		t, err := decodeTurn(value)
		if err != nil {
			return nil, err
		}
		for _, known := range t.calls {
			answers = append(answers, t.full(known, now))
		}
	}
	records, err := s.resolve(ctx, answers)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(records, func(a, b results.Record) int {
		return cmp.Or(a.ClaimedAt.Compare(b.ClaimedAt), cmp.Compare(a.Key.Turn, b.Key.Turn), cmp.Compare(a.Key.Call, b.Key.Call))
	})
	return records, nil
}
