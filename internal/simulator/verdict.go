package simulator

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"time"
)

// verdict is what a result would do.
type verdict uint8

const (
	verdictFirst  verdict = iota // the first result of a pending call
	verdictRepeat                // accepted again, nothing changes
)

// judge decides about one result without changing anything. s.mu must be held.
func (s *session) judge(r *toolResult) (verdict, error) {
	sw := &s.sim.sw
	c, ok := s.calls[callKey{r.turnID, r.callID}]
	if !ok {
		for key := range s.calls {
			if key.callID == r.callID {
				// A call of another turn is reported by an internal id, not by the call's.
				return 0, s.unknownCall(newID("exec-"))
			}
		}
		return 0, s.unknownCall(r.callID)
	}
	if c.registeredAt.After(time.Now()) {
		return 0, s.unknownCall(r.callID)
	}
	if refused, named := s.sim.faults.refuses(r.callID, c.name); refused {
		if !named || !sw.ErrorNamesCall {
			return 0, invalidRequest("One of the events was refused.")
		}
		return 0, invalidRequest("The result of %s was refused.", r.callID)
	}
	switch c.state {
	case callCancelled:
		return 0, s.refused(sw.ResultAfterCancel, r.callID, "The turn of the tool call has ended.")
	case callAccepted, callAnswered:
		return verdictRepeat, s.judgeAnswered(c, r)
	default:
		if c.async && c.turn.ended() && sw.LateAsyncResult != http.StatusAccepted {
			return 0, s.refused(sw.LateAsyncResult, r.callID, "")
		}
		return verdictFirst, nil
	}
}

func (s *session) judgeAnswered(c *call, r *toolResult) error {
	saved := toolResult{success: c.success, output: c.output, errText: c.errText}
	err := s.judgeRepeat(r, saved.same(r))
	if err != nil {
		s.sim.stats.duplicate(s.id, c)
	}
	return err
}

// judgeRepeat decides about another result of a call that has one.
func (s *session) judgeRepeat(r *toolResult, same bool) error {
	status, message := s.sim.sw.DuplicateDifferent, "The tool call already has a different result."
	if same {
		status, message = s.sim.sw.DuplicateIdentical, "The tool call already has a result."
	}
	if status == http.StatusAccepted {
		return nil
	}
	return s.refused(status, r.callID, message)
}

func (s *session) refused(status int, callID, conflictMessage string) error {
	if status == http.StatusConflict {
		return conflict("%s", conflictMessage)
	}
	return s.unknownCall(callID)
}

// unknownCall is the error whose exact message the official clients retry.
func (s *session) unknownCall(id string) error {
	if !s.sim.sw.ErrorNamesCall {
		return invalidRequest("Unknown pending tool call.")
	}
	return invalidRequest("Unknown pending tool call: %s", id)
}

// same reports whether both results say the same, however their JSON is written.
func (r *toolResult) same(other *toolResult) bool {
	return r.success == other.success && sameJSON(r.output, other.output) && sameJSON(r.errText, other.errText)
}

func sameJSON(a, b json.RawMessage) bool {
	if isNull(a) || isNull(b) {
		return isNull(a) && isNull(b)
	}
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
