package simulator

import (
	"slices"
	"sync"
	"time"
)

// responseStore holds the responses, what can be referred to by id, and the conversations.
type responseStore struct {
	mu      sync.RWMutex
	byID    map[string]*response
	ordered []*response // with those that are not stored or were deleted
	gone    map[string]struct{}
	items   map[string]*responseItem // of stored responses and conversations
	// reasoning maps the id of a call's item to that of the reasoning it came with.
	reasoning map[string]string
	keys      map[string]keyedResponse

	conversations map[string]*conversation
	outputs       outputLog
}

// keyedResponse is what an Idempotency-Key was used for.
type keyedResponse struct {
	body string
	made *response
}

func (st *responseStore) init() {
	st.byID = make(map[string]*response)
	st.gone = make(map[string]struct{})
	st.items = make(map[string]*responseItem)
	st.reasoning = make(map[string]string)
	st.keys = make(map[string]keyedResponse)
	st.conversations = make(map[string]*conversation)
	st.outputs.byCall = make(map[string]*ReceivedOutput)
}

// add makes a response known, with the calls that it is going to have.
func (st *responseStore) add(r *response) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r.seq = int64(len(st.ordered)) + 1
	st.byID[r.id] = r
	st.ordered = append(st.ordered, r)
	st.know(r.input, r.stored)
	reasoning := ""
	for i := range r.generation.Items {
		u := &r.generation.Items[i]
		switch {
		case u.Kind == kindReasoning:
			reasoning = u.ID
		case callKinds[u.Kind] != "":
			if reasoning != "" {
				st.reasoning[u.ID] = reasoning
			}
			st.outputs.emitted(r.id, u)
		}
	}
}

// know makes items known by id. st.mu must be held.
func (st *responseStore) know(items []*responseItem, stored bool) {
	if !stored {
		return
	}
	for _, it := range items {
		st.items[it.id] = it
	}
}

// ended makes the output of a response known by id. Its mu must be held.
func (st *responseStore) ended(r *response) {
	r.sim.stats.responseEnds[slices.Index(responseEnds[:], r.status)].Add(1)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.know(r.output, r.stored)
}

// getStored returns a stored response that is neither deleted nor older than the service keeps them.
func (s *Simulator) getStored(id string) (*response, bool) {
	st := &s.responses
	st.mu.RLock()
	defer st.mu.RUnlock()
	r, ok := st.byID[id]
	if !ok || !r.stored {
		return nil, false
	}
	if keep := s.sw.ResponseRetention; keep > 0 && time.Since(r.created) > keep {
		return nil, false
	}
	return r, true
}

func (st *responseStore) remove(r *response) {
	st.mu.Lock()
	defer st.mu.Unlock()
	delete(st.byID, r.id)
	st.gone[r.id] = struct{}{}
}

func (st *responseStore) item(id string) (*responseItem, bool) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	it, ok := st.items[id]
	return it, ok
}

func (st *responseStore) hasItem(id string) bool {
	_, ok := st.item(id)
	return ok
}

func (st *responseStore) reasoningOf(itemID string) string {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.reasoning[itemID]
}

func (st *responseStore) all() []*response {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return slices.Clone(st.ordered)
}

// keyed returns what a key was used for, and claims it for a response otherwise.
func (st *responseStore) keyed(key string, body []byte) (keyedResponse, bool) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	k, ok := st.keys[key]
	return k, ok && k.body == string(body)
}

func (st *responseStore) keep(key string, body []byte, r *response) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.keys[key] = keyedResponse{string(body), r}
}
