package simulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
)

// conversation is a durable list of items that responses continue and append to.
type conversation struct {
	id        string
	createdAt int64
	pinned    bool // a fixture

	mu       sync.Mutex
	metadata json.RawMessage
	items    []*responseItem
	busy     *response // only one at a time may use it
}

// claim takes the conversation for a response.
func (c *conversation) claim(r *response) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy != nil {
		return false
	}
	c.busy = r
	return true
}

// release gives the conversation free; keep appends the input and output of the response, whose mu must be held.
func (c *conversation) release(r *response, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy != r {
		return
	}
	c.busy = nil
	if keep {
		c.items = append(append(slices.Clip(c.items), r.input...), r.output...)
	}
}

func (c *conversation) snapshot() []*responseItem {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.items)
}

// append renders the conversation object.
func (c *conversation) append(b []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b = appendString(append(b, `{"id":`...), c.id)
	b = append(b, `,"object":"conversation"`...)
	b = appendIntField(b, "created_at", c.createdAt)
	metadata := c.metadata
	if isNull(metadata) {
		metadata = json.RawMessage("{}")
	}
	return append(appendRawField(b, "metadata", metadata), '}')
}

func unknownConversation(id string) *apiError {
	return unknownObject("Conversation with id '%s' not found.", id)
}

func (s *Simulator) findConversation(id string) (*conversation, bool) {
	s.responses.mu.RLock()
	defer s.responses.mu.RUnlock()
	c, ok := s.responses.conversations[id]
	return c, ok
}

func (s *Simulator) putConversation(c *conversation) {
	s.responses.mu.Lock()
	defer s.responses.mu.Unlock()
	s.responses.conversations[c.id] = c
	s.responses.know(c.items, true)
}

func (s *Simulator) withConversation(h func(http.ResponseWriter, *http.Request, *conversation) error) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := r.PathValue("conversation")
		c, ok := s.findConversation(id)
		if !ok {
			return unknownConversation(id)
		}
		return h(w, r, c)
	}
}

type conversationRequest struct {
	Items    json.RawMessage `json:"items"`
	Metadata json.RawMessage `json:"metadata"`
}

func (s *Simulator) readConversation(w http.ResponseWriter, r *http.Request) (conversationRequest, []*responseItem, error) {
	var req conversationRequest
	if err := s.decodeBody(w, r, &req); err != nil {
		return req, nil, err
	}
	if err := checkResponseMetadata(req.Metadata); err != nil {
		return req, nil, err
	}
	items, err := parseResponseInput(req.Items, "items")
	return req, items, err
}

func (s *Simulator) createConversation(w http.ResponseWriter, r *http.Request) error {
	req, items, err := s.readConversation(w, r)
	if err != nil {
		return err
	}
	c := &conversation{id: newID("conv_"), createdAt: unixNow(), metadata: req.Metadata, items: items}
	s.putConversation(c)
	writeJSON(w, http.StatusOK, c.append(nil))
	return nil
}

func (s *Simulator) getConversation(w http.ResponseWriter, _ *http.Request, c *conversation) error {
	writeJSON(w, http.StatusOK, c.append(nil))
	return nil
}

func (s *Simulator) updateConversation(w http.ResponseWriter, r *http.Request, c *conversation) error {
	req, _, err := s.readConversation(w, r)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.metadata = req.Metadata
	c.mu.Unlock()
	writeJSON(w, http.StatusOK, c.append(nil))
	return nil
}

func (s *Simulator) deleteConversation(w http.ResponseWriter, _ *http.Request, c *conversation) error {
	if !c.pinned {
		s.responses.mu.Lock()
		delete(s.responses.conversations, c.id)
		s.responses.mu.Unlock()
	}
	b := appendString([]byte(`{"id":`), c.id)
	writeJSON(w, http.StatusOK, append(b, `,"object":"conversation.deleted","deleted":true}`...))
	return nil
}

func responseItemID(it *responseItem) string { return it.id }

func renderResponseItem(it *responseItem, b []byte) []byte { return append(b, it.raw...) }

func (s *Simulator) addConversationItems(w http.ResponseWriter, r *http.Request, c *conversation) error {
	_, items, err := s.readConversation(w, r)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.busy != nil {
		c.mu.Unlock()
		return refused("", "conversation_locked",
			"Another process is currently operating on this conversation. Please retry in a few seconds.")
	}
	c.items = append(slices.Clip(c.items), items...)
	c.mu.Unlock()
	s.putConversation(c)
	writeJSON(w, http.StatusOK, renderList(items, false, responseItemID, renderResponseItem))
	return nil
}

func (s *Simulator) listConversationItems(w http.ResponseWriter, r *http.Request, c *conversation) error {
	body, err := renderPage(s, r, c.snapshot(), responseItemID, renderResponseItem)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

func (c *conversation) index(id string) (int, error) {
	i := slices.IndexFunc(c.items, func(it *responseItem) bool { return it.id == id })
	if i < 0 {
		return 0, unknownObject("Item with id '%s' not found in conversation '%s'.", id, c.id)
	}
	return i, nil
}

func (s *Simulator) getConversationItem(w http.ResponseWriter, r *http.Request, c *conversation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, err := c.index(r.PathValue("item"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, c.items[i].raw)
	return nil
}

func (s *Simulator) deleteConversationItem(w http.ResponseWriter, r *http.Request, c *conversation) error {
	c.mu.Lock()
	i, err := c.index(r.PathValue("item"))
	if err == nil && !c.pinned {
		c.items = slices.Delete(slices.Clone(c.items), i, i+1)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, c.append(nil))
	return nil
}
