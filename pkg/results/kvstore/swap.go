package kvstore

import "context"

// swap changes one value by compare-and-set. change gets the value, nil when
// there is none, and the server's clock in ms; it returns the value wanted
// instead, or nil to leave it. It may run several times; the last run counts.
func (s *Store) swap(ctx context.Context, key string, change func(value []byte, now int64) ([]byte, error)) error {
	for try := range tries {
		if err := pause(ctx, try); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		now, err := s.clock.now(ctx)
		if err != nil {
			return err
		}
		got, err := s.bucket.get(ctx, key)
		if err != nil {
			return err
		}
		wanted, err := change(got.value, now)
		if err != nil || wanted == nil {
			return err
		}
		err = s.bucket.put(ctx, key, wanted, got.revision, 0)
		if err == nil || !conflict(err) {
			return err
		}
	}
	return ErrContended
}
