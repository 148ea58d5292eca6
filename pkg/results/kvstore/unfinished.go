package kvstore

import "context"

// Unfinished visits the sessions with calls that have not ended; see
// results.Store. It reads every turn of the bucket, and then visits.
func (s *Store) Unfinished(ctx context.Context, each func(session string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var sessions []string
	found := map[string]bool{}
	err := s.bucket.walk(ctx, "t.>", func(value []byte) error {
		t, err := decodeTurn(value)
		if err != nil {
			return err
		}
		if id := t.id.session; !t.ended() && !found[id] {
			found[id] = true
			sessions = append(sessions, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if err := each(session); err != nil {
			return err
		}
	}
	return nil
}
