package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// savedResponses is the Responses API in the state file. Items are kept once and referred to by their index.
type savedResponses struct {
	Items         [][]byte            `json:"items,omitempty"`
	Responses     []savedResponse     `json:"responses,omitempty"`
	Conversations []savedConversation `json:"conversations,omitempty"`
	Reasoning     map[string]string   `json:"reasoning,omitempty"`
	Outputs       []savedOutput       `json:"outputs,omitempty"`
	Received      int64               `json:"received,omitempty"`
	Keys          []savedKeyed        `json:"keys,omitempty"`
}

type savedResponse struct {
	ID           string         `json:"id"`
	Created      time.Time      `json:"created"`
	Completed    time.Time      `json:"completed,omitzero"`
	Status       responseStatus `json:"status"`
	Background   bool           `json:"background,omitempty"`
	Stored       bool           `json:"stored,omitempty"`
	Streamed     bool           `json:"streamed,omitempty"`
	Gone         bool           `json:"gone,omitempty"`
	Echo         []byte         `json:"echo"`
	Metadata     []byte         `json:"metadata,omitempty"`
	Previous     string         `json:"previous,omitempty"`
	Conversation string         `json:"conversation,omitempty"`
	Generation   *generation    `json:"generation"`
	Base         []int          `json:"base,omitempty"`
	Input        []int          `json:"input,omitempty"`
	Output       []int          `json:"output,omitempty"`
	Events       [][]byte       `json:"events,omitempty"`
	Kinds        []string       `json:"kinds,omitempty"`
}

type savedConversation struct {
	ID        string `json:"id"`
	CreatedAt int64  `json:"created_at"`
	Metadata  []byte `json:"metadata,omitempty"`
	Items     []int  `json:"items,omitempty"`
}

// savedOutput keeps contents as bytes: as JSON they would be spelled anew.
type savedOutput struct {
	CallID     string         `json:"call_id"`
	ResponseID string         `json:"response_id,omitempty"`
	Namespace  string         `json:"namespace,omitempty"`
	Name       string         `json:"name,omitempty"`
	Contents   []savedContent `json:"contents,omitempty"`
}

type savedContent struct {
	Output []byte `json:"output"`
	Caller []byte `json:"caller,omitempty"`
	Times  int    `json:"times"`
}

type savedKeyed struct {
	Key      string `json:"key"`
	Body     string `json:"body"`
	Response string `json:"response"`
}

// itemTable gives items their index.
type itemTable struct {
	index map[*responseItem]int
	raw   [][]byte
}

func (t *itemTable) save(items []*responseItem) []int {
	return each(items, func(it *responseItem) int {
		at, known := t.index[it]
		if !known {
			at = len(t.raw)
			t.index[it] = at
			t.raw = append(t.raw, it.raw)
		}
		return at
	})
}

// saveResponses copies responses and conversations. One that ends while it copies counts as not ended, if its conversation
// does not have its items yet.
func (s *Simulator) saveResponses() *savedResponses {
	st := &s.responses
	table := itemTable{index: make(map[*responseItem]int)}
	st.mu.RLock()
	saved := &savedResponses{Reasoning: maps.Clone(st.reasoning), Received: st.outputs.total}
	ordered, gone := slices.Clone(st.ordered), maps.Clone(st.gone)
	conversations := slices.Collect(maps.Values(st.conversations))
	for key, k := range st.keys {
		saved.Keys = append(saved.Keys, savedKeyed{key, k.body, k.made.id})
	}
	st.mu.RUnlock()
	saved.Outputs = each(s.ReceivedOutputs(), func(o ReceivedOutput) savedOutput {
		return savedOutput{o.CallID, o.ResponseID, o.Namespace, o.Name, each(o.Contents, func(c ReceivedContent) savedContent {
			return savedContent{c.Output, c.Caller, c.Times}
		})}
	})
	working := make(map[*response]bool)
	for _, c := range conversations {
		if !c.pinned {
			c.mu.Lock()
			saved.Conversations = append(saved.Conversations, savedConversation{c.id, c.createdAt, c.metadata, table.save(c.items)})
			working[c.busy] = true
			c.mu.Unlock()
		}
	}
	for _, r := range ordered {
		if !r.pinned {
			_, deleted := gone[r.id]
			saved.Responses = append(saved.Responses, r.save(&table, deleted, working[r]))
		}
	}
	saved.Items = table.raw
	return saved
}

func (r *response) save(table *itemTable, gone, working bool) savedResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := r.status
	if working && status.ended() {
		status = responseInProgress
	}
	saved := savedResponse{
		ID: r.id, Created: r.created, Completed: r.completed, Status: status, Background: r.background, Stored: r.stored,
		Streamed: r.streamed, Gone: gone, Echo: r.echo, Metadata: r.metadata, Previous: r.previous, Generation: r.generation,
		Base: table.save(r.base), Input: table.save(r.input),
	}
	if r.conversation != nil {
		saved.Conversation = r.conversation.id
	}
	if status.ended() { // Otherwise it is produced anew.
		saved.Output, saved.Events, saved.Kinds = table.save(r.output), r.events, r.kinds
	}
	return saved
}

// restoreResponses takes over what was saved. Responses that had not ended begin again when the simulator starts.
func (s *Simulator) restoreResponses(saved *savedResponses) error {
	if saved == nil {
		return nil
	}
	items := make([]*responseItem, len(saved.Items))
	for i, raw := range saved.Items {
		var err error
		if items[i], err = parseItem(raw, fmt.Sprintf("items[%d]", i)); err != nil {
			return err
		}
	}
	pick := func(indexes []int) ([]*responseItem, error) {
		for _, at := range indexes {
			if at < 0 || at >= len(items) {
				return nil, fmt.Errorf("there is no item %d", at)
			}
		}
		return each(indexes, func(at int) *responseItem { return items[at] }), nil
	}
	for _, c := range saved.Conversations {
		list, err := pick(c.Items)
		if err != nil {
			return err
		}
		s.putConversation(&conversation{id: c.ID, createdAt: c.CreatedAt, metadata: c.Metadata, items: list})
	}
	for _, d := range saved.Responses {
		if err := s.restoreResponse(d, pick); err != nil {
			return err
		}
	}
	st := &s.responses
	st.mu.Lock()
	defer st.mu.Unlock()
	maps.Copy(st.reasoning, saved.Reasoning)
	for _, k := range saved.Keys {
		if made := st.byID[k.Response]; made != nil {
			st.keys[k.Key] = keyedResponse{k.Body, made}
		}
	}
	st.outputs = outputLog{byCall: make(map[string]*ReceivedOutput), total: saved.Received}
	for _, o := range saved.Outputs {
		*st.outputs.of(o.CallID) = ReceivedOutput{
			o.CallID, o.ResponseID, o.Namespace, o.Name,
			each(o.Contents, func(c savedContent) ReceivedContent { return ReceivedContent{c.Output, c.Caller, c.Times} }),
		}
	}
	return nil
}

func (s *Simulator) restoreResponse(d savedResponse, pick func([]int) ([]*responseItem, error)) (err error) {
	r := &response{
		sim: s, id: d.ID, created: d.Created, completed: d.Completed, background: d.Background, stored: d.Stored,
		streamed: d.Streamed, echo: d.Echo, previous: d.Previous, metadata: json.RawMessage(d.Metadata),
		generation: d.Generation, status: d.Status, events: d.Events, kinds: d.Kinds, changed: make(chan struct{}),
	}
	if r.generation == nil {
		return fmt.Errorf("response %s has no generation", d.ID)
	}
	if r.base, err = pick(d.Base); err != nil {
		return err
	}
	if r.input, err = pick(d.Input); err != nil {
		return err
	}
	if r.output, err = pick(d.Output); err != nil {
		return err
	}
	if c, ok := s.findConversation(d.Conversation); ok {
		r.conversation = c
		if !r.status.ended() {
			c.claim(r)
		}
	}
	if !r.status.ended() {
		r.status = responseInProgress
		if r.background {
			r.status = responseQueued
		}
	}
	st := &s.responses
	st.add(r)
	st.mu.Lock()
	st.know(r.output, r.stored)
	st.mu.Unlock()
	if d.Gone {
		st.remove(r)
	}
	return nil
}
