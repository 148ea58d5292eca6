package simulator

import (
	"maps"
	"slices"
	"sync"
)

// registry holds the sessions in the order of their creation.
type registry struct {
	mu      sync.RWMutex
	byID    map[string]*session
	ordered []*session // ascending seq; holds deleted sessions until compact
	deleted map[string]struct{}
	nextSeq int64
}

func (r *registry) add(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = make(map[string]*session)
	}
	if r.deleted == nil {
		r.deleted = make(map[string]struct{})
	}
	r.nextSeq++
	s.seq = r.nextSeq
	r.byID[s.id] = s
	r.ordered = append(r.ordered, s)
}

func (r *registry) get(id string) (*session, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s, ok := r.byID[id]
	return s, ok
}

func (r *registry) wasDeleted(id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.deleted[id]
	return ok
}

func (r *registry) deletedIDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.deleted))
}

func (r *registry) markDeleted(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted == nil && len(ids) > 0 {
		r.deleted = make(map[string]struct{})
	}
	for _, id := range ids {
		r.deleted[id] = struct{}{}
	}
}

func (r *registry) remove(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.byID[s.id]; !ok {
		return
	}
	delete(r.byID, s.id)
	r.deleted[s.id] = struct{}{}
	// Readers walk snapshots of ordered, so it is replaced, not edited; seldom, because it is a copy.
	if gone := len(r.ordered) - len(r.byID); gone > 32 && gone > len(r.byID) {
		kept := make([]*session, 0, len(r.byID)+1)
		for _, other := range r.ordered {
			if _, ok := r.byID[other.id]; ok {
				kept = append(kept, other)
			}
		}
		r.ordered = kept
	}
}

// walk returns the sessions after (and without) the given one in the asked order; nil starts at the beginning.
func (r *registry) walk(after *session, desc bool) func(yield func(*session) bool) {
	r.mu.RLock()
	ordered := r.ordered
	r.mu.RUnlock()
	at := func(seq int64) int {
		i, _ := slices.BinarySearchFunc(ordered, seq, func(s *session, seq int64) int { return int(s.seq - seq) })
		return i
	}
	return func(yield func(*session) bool) {
		if desc {
			end := len(ordered)
			if after != nil {
				end = at(after.seq)
			}
			for i := end - 1; i >= 0; i-- {
				if !ordered[i].gone.Load() && !yield(ordered[i]) {
					return
				}
			}
			return
		}
		start := 0
		if after != nil {
			start = at(after.seq + 1)
		}
		for _, s := range ordered[start:] {
			if !s.gone.Load() && !yield(s) {
				return
			}
		}
	}
}
