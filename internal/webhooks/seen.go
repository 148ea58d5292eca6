package webhooks

import "sync"

// remembered is how many webhooks are remembered. Handling one twice does no harm; that
// is why they are remembered in memory only.
const remembered = 16384

// seen remembers the ids of the latest webhooks.
type seen struct {
	mu    sync.Mutex
	state map[string]progress
	ring  []string // the ids that were handled, the oldest at next
	next  int
}

type progress int

const (
	unknown progress = iota
	underWay
	handled
)

func newSeen(size int) *seen {
	return &seen{state: map[string]progress{}, ring: make([]string, size)}
}

// begin says how far the webhook is; one that is unknown is under way from now on.
func (s *seen) begin(id string) progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.state[id]
	if at == unknown {
		s.state[id] = underWay
	}
	return at
}

// end says that it is not under way any more, and whether it was handled.
func (s *seen) end(id string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !done {
		delete(s.state, id)
		return
	}
	if oldest := s.ring[s.next]; oldest != "" {
		delete(s.state, oldest)
	}
	s.state[id], s.ring[s.next] = handled, id
	s.next = (s.next + 1) % len(s.ring)
}
