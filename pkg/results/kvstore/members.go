package kvstore

import (
	"context"
	"maps"
	"slices"
	"time"
)

const membersKey = "members"

// members are the announced dispatchers, each with its expiry in ms.
type members map[string]int64

func (m members) encode() []byte {
	var e encoder
	e.uint(uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		e.text(name)
		e.uint(uint64(m[name])) //nolint:gosec // never negative
	}
	return e.b
}

// decodeMembers reads those that have not expired.
func decodeMembers(value []byte, now int64) (members, error) {
	m := members{}
	if value == nil {
		return m, nil
	}
	d := decoder{b: value}
	for range d.count() {
		name, expiry := d.text(), int64(d.uint()) //nolint:gosec // was an int64
		if expiry > now {
			m[name] = expiry
		}
	}
	return m, d.err()
}

// Join announces a dispatcher; see results.Store.
func (s *Store) Join(ctx context.Context, member string, ttl time.Duration) ([]string, error) {
	var names []string
	err := s.swap(ctx, membersKey, func(value []byte, now int64) ([]byte, error) {
		m, err := decodeMembers(value, now)
		if err != nil {
			return nil, err
		}
		m[member] = now + ttl.Milliseconds()
		names = slices.Sorted(maps.Keys(m))
		return m.encode(), nil
	})
	return names, err
}

// Leave withdraws a dispatcher; see results.Store.
func (s *Store) Leave(ctx context.Context, member string) error {
	return s.swap(ctx, membersKey, func(value []byte, now int64) ([]byte, error) {
		m, err := decodeMembers(value, now)
		if err != nil {
			return nil, err
		}
		if _, announced := m[member]; !announced {
			return nil, nil
		}
		delete(m, member)
		return m.encode(), nil
	})
}
