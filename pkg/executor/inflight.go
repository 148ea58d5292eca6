package executor

import (
	"sync"

	"github.com/callfan/callfan/pkg/call"
)

// inflight knows the calls that this process holds, to find a repeated delivery and
// the target of a cancel notice.
type inflight struct {
	mu      sync.Mutex
	calls   map[call.Key]map[string]*held // by message id: attempt and hand-over
	notices notices
}

// held is one call in this process, from its delivery to its end.
type held struct {
	noticed bool // a cancel notice about the call came before it

	mu        sync.Mutex
	cancelled bool
	cancel    func() // nil before the call is looked up or run
}

func newInflight() *inflight {
	return &inflight{calls: make(map[call.Key]map[string]*held)}
}

// add enters the call; false when this very hand-over is held already.
func (i *inflight) add(d call.Dispatch) (*held, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	byID := i.calls[d.Key]
	if byID == nil {
		byID = make(map[string]*held, 1)
		i.calls[d.Key] = byID
	}
	id := d.MessageID()
	if _, there := byID[id]; there {
		return nil, false
	}
	h := &held{noticed: i.notices.about(d.Key)}
	byID[id] = h
	return h, true
}

func (i *inflight) remove(d call.Dispatch) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.calls[d.Key], d.MessageID())
	if len(i.calls[d.Key]) == 0 {
		delete(i.calls, d.Key)
	}
}

// cancel marks the calls of that key and ends their contexts. It reports whether
// there was one.
func (i *inflight) cancel(k call.Key) bool {
	i.mu.Lock()
	var found []*held
	for _, h := range i.calls[k] {
		found = append(found, h)
	}
	if len(found) == 0 {
		i.notices.note(k)
	}
	i.mu.Unlock()
	for _, h := range found {
		h.mu.Lock()
		h.cancelled = true
		if h.cancel != nil {
			h.cancel()
		}
		h.mu.Unlock()
	}
	return len(found) > 0
}

// started tells how to cancel what is done with the call now; a notice that came earlier
// cancels it at once.
func (h *held) started(cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel = cancel
	if h.cancelled {
		cancel()
	}
}

func (h *held) isCancelled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cancelled
}
