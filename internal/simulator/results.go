package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Result is the accepted result of one call, for tests.
type Result struct {
	TurnID, CallID, Name string
	// Arguments are the bytes that were emitted; nil when there was no arguments field.
	Arguments json.RawMessage
	// Answered is false while no result was accepted; then the fields below are zero.
	Answered bool
	Success  bool
	// Output and Error are the JSON as submitted, byte for byte; nil when absent.
	Output, Error json.RawMessage
}

// Results returns all calls of a session in the order they were required, with their accepted results. It fails when
// there is no such session.
func (s *Simulator) Results(sessionID string) ([]Result, error) {
	ses, ok := s.sessions.get(sessionID)
	if !ok {
		return nil, fmt.Errorf("simulator: no session %q", sessionID)
	}
	ses.mu.Lock()
	defer ses.mu.Unlock()
	var results []Result
	for _, t := range ses.turns {
		for _, c := range t.calls {
			r := Result{
				TurnID: t.id, CallID: c.id, Name: c.name,
				Answered: c.state == callAnswered || c.state == callAccepted,
				Success:  c.success, Output: c.output, Error: c.errText,
			}
			if len(c.items) > 0 {
				r.Arguments = c.items[0].arguments
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// SessionIDs returns the ids of all sessions in the order of their creation.
func (s *Simulator) SessionIDs() []string {
	var ids []string
	for ses := range s.sessions.walk(nil, false) {
		ids = append(ids, ses.id)
	}
	return ids
}

func (s *Simulator) getResults(w http.ResponseWriter, r *http.Request) error {
	id := r.URL.Query().Get("session")
	results, err := s.Results(id)
	if err != nil {
		return notFound("Session", id)
	}
	b := append([]byte(nil), `{"results":[`...)
	for i, result := range results {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"turn_id":`...)
		b = appendString(b, result.TurnID)
		b = appendStringField(b, "call_id", result.CallID)
		b = appendStringField(b, "name", result.Name)
		b = appendBoolField(b, "answered", result.Answered)
		b = appendBoolField(b, "success", result.Success)
		if result.Arguments != nil {
			b = appendRawField(b, "arguments", result.Arguments)
		}
		b = appendRawField(b, "output", result.Output)
		b = append(appendRawField(b, "error", result.Error), '}')
	}
	writeJSON(w, http.StatusOK, append(b, `]}`...))
	return nil
}
