package kvstore

import (
	"context"
	"fmt"

	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/internal/body"
)

// answer is a record whose result is still to be read: body is its key, empty
// when there is none to read. full: with the history.
type answer struct {
	record results.Record
	body   string
	full   bool
}

// storedBody is a result as the bucket keeps it. name is the last part of its
// key.
type storedBody struct {
	name  string
	value []byte
}

// stored names a result after its content, so that a retry finds what the first
// try left, and after this store, so that none ever deletes, as its own leftover,
// what another's turn points to.
func (s *Store) stored(c results.Completion) storedBody {
	value := body.Append(nil, c.Result)
	return storedBody{name: hash(s.instance, c.OutcomeID, string(value)), value: value}
}

func (e *edit) answer(known *entryOfCall) answer { return e.turn.answer(known, e.now) }

func (t *turn) answer(known *entryOfCall, now int64) answer {
	a := answer{record: t.record(known, now)}
	if known.body != "" {
		a.body = t.id.bodyKey(known.call, known.body)
	}
	return a
}

// full is an answer with the call's history.
func (t *turn) full(known *entryOfCall, now int64) answer {
	a := t.answer(known, now)
	a.record.History, a.full = known.steps(), true
	return a
}

// resolve reads the results of the answers.
func (s *Store) resolve(ctx context.Context, answers []answer) ([]results.Record, error) {
	records := make([]results.Record, len(answers))
	var missing []int
	for i, a := range answers {
		records[i] = a.record
		if a.body != "" {
			missing = append(missing, i)
		}
	}
	err := s.each(ctx, len(missing), func(ctx context.Context, n int) error {
		i := missing[n]
		var err error
		records[i], err = s.withBody(ctx, answers[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// withBody reads one result. If it has just been dropped, because the call
// ended, it reads the call again.
func (s *Store) withBody(ctx context.Context, a answer) (results.Record, error) {
	for range 3 {
		if a.body == "" {
			return a.record, nil
		}
		got, err := s.bucket.get(ctx, a.body)
		if err != nil {
			return results.Record{}, err
		}
		if got.value != nil {
			a.record.Result, err = body.Parse(got.value)
			return a.record, err
		}
		e, _, err := s.lanes.read(ctx, idOf(a.record.Key))
		if err != nil {
			return results.Record{}, err
		}
		known := e.index[a.record.Key.Call]
		if known == nil {
			return results.Record{Key: a.record.Key}, nil
		}
		if a.full {
			a = e.full(known, e.now)
		} else {
			a = e.answer(known)
		}
	}
	return results.Record{}, fmt.Errorf("%w: %s", errBodyLost, a.record.Key)
}
