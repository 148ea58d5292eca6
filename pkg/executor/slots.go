package executor

import (
	"context"
	"sync"
	"time"
)

const (
	// pullBatch is the number of free slots at which a pull does not wait for more.
	pullBatch = 16
	// pullLargest is the most that one pull asks for, the consumer's bound.
	pullLargest = 256
	// gatherFor is how long a free slot waits for others to be pulled together.
	gatherFor = time.Millisecond
)

// slots counts the calls that may still be started.
type slots struct {
	mu    sync.Mutex
	free  int
	total int
	freed chan struct{} // has a token after a release
}

func newSlots(n int) *slots {
	return &slots{free: n, total: n, freed: make(chan struct{}, 1)}
}

func (s *slots) release(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	s.free += n
	s.mu.Unlock()
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// take takes the free slots, at most pullLargest, if there are at least n.
func (s *slots) take(atLeast int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 || s.free < atLeast {
		return 0
	}
	n := min(s.free, pullLargest)
	s.free -= n
	return n
}

// gather takes the free slots as soon as they are worth a pull, or a moment after
// the first one is free. It gives 0 when ctx ended.
func (s *slots) gather(ctx context.Context) int {
	worth := min(pullBatch, s.total)
	var lingered <-chan time.Time
	for ctx.Err() == nil {
		if n := s.take(worth); n > 0 {
			return n
		}
		if lingered == nil && s.any() {
			lingered = time.After(gatherFor)
		}
		select {
		case <-ctx.Done():
		case <-s.freed:
		case <-lingered:
			if n := s.take(1); n > 0 {
				return n
			}
			lingered = nil
		}
	}
	return 0
}

func (s *slots) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free > 0
}
