package simulator

import (
	"encoding/json"
	"net/http"
)

type itemKind uint8

const (
	itemUserMessage itemKind = iota
	itemAssistantMessage
	itemFunctionCall
	itemFunctionOutput
)

type itemStatus string

const (
	itemInProgress itemStatus = "in_progress"
	itemCompleted  itemStatus = "completed"
	itemFailed     itemStatus = "failed"
	itemIncomplete itemStatus = "incomplete"
)

// item is one entry of a session's history; the session's mu guards it.
type item struct {
	id          string
	kind        itemKind
	status      itemStatus
	turn        *turn
	outputIndex int
	content     json.RawMessage // user message
	text        string          // assistant message
	call        *call           // function call and output
	name        string          // function call
	arguments   json.RawMessage // function call
}

func (it *item) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, it.id)
	switch it.kind {
	case itemFunctionCall:
		b = append(b, `,"type":"function_call"`...)
	case itemFunctionOutput:
		b = append(b, `,"type":"function_call_output"`...)
	default:
		b = append(b, `,"type":"message"`...)
	}
	b = appendStringField(b, "turn_id", it.turn.id)
	switch it.kind {
	case itemUserMessage:
		b = append(b, `,"role":"user","phase":null`...)
		b = appendRawField(b, "content", it.content)
	case itemAssistantMessage:
		b = append(b, `,"role":"assistant","phase":"final_answer","content":[`...)
		if it.text != "" || it.status == itemCompleted {
			b = appendOutputText(b, it.text)
		}
		b = append(b, ']')
	case itemFunctionCall:
		b = appendStringField(b, "call_id", it.call.id)
		b = appendStringField(b, "name", it.name)
		b = it.turn.session.appendArguments(b, it.arguments)
	case itemFunctionOutput:
		b = appendStringField(b, "call_id", it.call.id)
		b = appendRawField(b, "output", it.call.output)
		b = appendRawField(b, "error", it.call.errText)
	}
	return append(appendStringField(b, "status", string(it.status)), '}')
}

func appendOutputText(b []byte, text string) []byte {
	b = append(b, `{"type":"output_text","text":`...)
	b = appendString(b, text)
	return append(b, `,"annotations":[]}`...)
}

// addItem appends the item to the history and tells the streams. s.mu must be held.
func (s *session) addItem(it *item) {
	s.items = append(s.items, it)
	s.emitItem("agent.session.turn.item.added", it)
}

// visibleItems returns the items that lists show: without those in progress or incomplete. s.mu must be held.
func (s *session) visibleItems(turnID string) []*item {
	visible := make([]*item, 0, len(s.items))
	for _, it := range s.items {
		unfinished := it.status == itemInProgress || it.status == itemIncomplete
		if unfinished && !s.sim.sw.ListUnfinishedItems || turnID != "" && it.turn.id != turnID {
			continue
		}
		visible = append(visible, it)
	}
	return visible
}

func itemID(it *item) string { return it.id }

// locked renders with ses.mu held and answers without it, so that a slow client holds up nobody.
func locked(w http.ResponseWriter, ses *session, render func() ([]byte, error)) error {
	ses.mu.Lock()
	body, err := render()
	ses.mu.Unlock()
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

func (s *Simulator) listItems(w http.ResponseWriter, r *http.Request, ses *session) error {
	return locked(w, ses, func() ([]byte, error) {
		return renderPage(s, r, ses.visibleItems(""), itemID, (*item).append)
	})
}

func (s *Simulator) listTurnItems(w http.ResponseWriter, r *http.Request, ses *session) error {
	return locked(w, ses, func() ([]byte, error) {
		t, ok := ses.findTurn(r.PathValue("turn"))
		if !ok {
			return nil, notFound("Turn", r.PathValue("turn"))
		}
		return renderPage(s, r, ses.visibleItems(t.id), itemID, (*item).append)
	})
}

func (s *Simulator) listTurns(w http.ResponseWriter, r *http.Request, ses *session) error {
	return locked(w, ses, func() ([]byte, error) {
		return renderPage(s, r, ses.turns, turnID, (*turn).append)
	})
}

func turnID(t *turn) string { return t.id }

func (s *Simulator) getTurn(w http.ResponseWriter, r *http.Request, ses *session) error {
	return locked(w, ses, func() ([]byte, error) {
		t, ok := ses.findTurn(r.PathValue("turn"))
		if !ok {
			return nil, notFound("Turn", r.PathValue("turn"))
		}
		return t.append(nil), nil
	})
}

func (s *session) findTurn(id string) (*turn, bool) {
	for _, t := range s.turns {
		if t.id == id {
			return t, true
		}
	}
	return nil, false
}
