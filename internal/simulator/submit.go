package simulator

import (
	"encoding/json"
	"net/http"
)

// toolResult is one agent.session.input.tool_result. Output and error stay as sent.
type toolResult struct {
	turnID, callID string
	success        bool
	output         json.RawMessage
	errText        json.RawMessage
}

// inputEvent is one entry of a POST of events.
type inputEvent struct {
	kind      string
	result    *toolResult
	input     userInput
	requestID string
}

// postEvents is POST /agents/sessions/{id}/events.
func (s *Simulator) postEvents(w http.ResponseWriter, r *http.Request, ses *session) error {
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	events, err := s.parseEvents(body)
	if err != nil {
		return err
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > s.sw.MaxKeyBytes {
		return invalidRequest("The Idempotency-Key is longer than %d bytes.", s.sw.MaxKeyBytes)
	}

	if err := ses.submit(events, key, body); err != nil {
		s.stats.refuse(err)
		return err
	}
	w.Header().Set("Content-Length", "0")
	if s.sw.EventsStatus == http.StatusNoContent {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(s.sw.EventsStatus)
	return nil
}

func (s *Simulator) parseEvents(body []byte) ([]inputEvent, error) {
	var req struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := decodeFields(body, &req); err != nil {
		return nil, err
	}
	switch n := len(req.Events); {
	case req.Events == nil:
		return nil, invalidRequest("events is required and must be an array.")
	case n < s.sw.MinEventsPerPost:
		return nil, invalidRequest("events needs at least %d entry.", s.sw.MinEventsPerPost)
	case s.sw.MaxEventsPerPost > 0 && n > s.sw.MaxEventsPerPost:
		return nil, invalidRequest("events has %d entries; at most %d are allowed.", n, s.sw.MaxEventsPerPost)
	}
	events := make([]inputEvent, 0, len(req.Events))
	for i, raw := range req.Events {
		event, err := s.parseEvent(raw, i)
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	return events, nil
}

func (s *Simulator) parseEvent(raw json.RawMessage, i int) (inputEvent, error) {
	var fields struct {
		Type      string          `json:"type"`
		TurnID    string          `json:"turn_id"`
		CallID    string          `json:"call_id"`
		Success   *bool           `json:"success"`
		Output    json.RawMessage `json:"output"`
		Error     json.RawMessage `json:"error"`
		Input     json.RawMessage `json:"input"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
	}
	if err := decodeFields(raw, &fields); err != nil {
		return inputEvent{}, err
	}
	event := inputEvent{kind: fields.Type}
	switch fields.Type {
	case "agent.session.input.tool_result":
		r := &toolResult{turnID: fields.TurnID, callID: fields.CallID, output: fields.Output, errText: fields.Error}
		switch {
		case r.turnID == "":
			return event, invalidRequest("events[%d].turn_id is required.", i)
		case r.callID == "":
			return event, invalidRequest("events[%d].call_id is required.", i)
		case fields.Success == nil:
			return event, invalidRequest("events[%d].success is required.", i)
		case len(r.output) > s.sw.MaxResultBytes || len(r.errText) > s.sw.MaxResultBytes:
			return event, invalidRequest("events[%d] is too large: a tool result has at most %d bytes.", i, s.sw.MaxResultBytes)
		case !isNull(r.errText) && r.errText[0] != '"':
			return event, invalidRequest("events[%d].error must be a string.", i)
		}
		r.success = *fields.Success
		if err := checkOutput(r.output, i); err != nil {
			return event, err
		}
		event.result = r
	case "agent.session.input.message":
		input, err := s.parseInput(fields.Input)
		if err != nil {
			return event, err
		}
		event.input = input
	case "agent.session.input.cancel":
	case "agent.session.input.computer_use_approval_request_result":
		if fields.RequestID == "" || isNull(fields.Response) {
			return event, invalidRequest("events[%d].request_id and response are required.", i)
		}
		event.requestID = fields.RequestID
	default:
		return event, invalidRequest("events[%d].type %q is unknown.", i, fields.Type)
	}
	return event, nil
}

// checkOutput accepts a string, an array of input_text and input_image, null, or nothing.
func checkOutput(output json.RawMessage, i int) error {
	if isNull(output) || output[0] == '"' {
		return nil
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		ImageURL *string `json:"image_url"`
	}
	if err := json.Unmarshal(output, &parts); err != nil {
		return invalidRequest("events[%d].output must be a string or an array of content.", i)
	}
	for _, part := range parts {
		switch {
		case part.Type == "input_text" && part.Text != nil:
		case part.Type == "input_image" && part.ImageURL != nil:
		default:
			return invalidRequest("events[%d].output may hold input_text and input_image.", i)
		}
	}
	return nil
}

// submit applies the events of one POST.
func (s *session) submit(events []inputEvent, key string, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone.Load() {
		return notFound("Session", s.id)
	}
	if key != "" {
		replay, err := s.checkKey(key, body)
		if replay || err != nil {
			return err
		}
	}
	if s.sim.sw.BatchAtomic {
		if err := s.dryRun(events); err != nil {
			return err
		}
	}
	if s.sim.faults.fire(EndpointEventsPost, FaultAcceptedLost) != FaultNone {
		if key != "" && s.sim.faults.lossKeepsKey() {
			s.keys.remember(key, body)
		}
		return nil
	}
	accepted := 0
	defer func() { s.sim.stats.batch(accepted) }()
	for i := range events {
		first, err := s.apply(&events[i])
		if err != nil {
			return err // Without BatchAtomic, what came before stays applied.
		}
		if first {
			accepted++
		}
	}
	if key != "" {
		s.keys.remember(key, body)
	}
	return nil
}

// dryRun returns the error the events would give, changing nothing. Results of one call within the POST are checked
// against each other.
func (s *session) dryRun(events []inputEvent) error {
	inPost := make(map[callKey]*toolResult)
	for i := range events {
		e := &events[i]
		if e.result == nil {
			if err := s.checkOther(e); err != nil {
				return err
			}
			continue
		}
		v, err := s.judge(e.result)
		if err != nil {
			return err
		}
		if v != verdictFirst {
			continue
		}
		k := callKey{e.result.turnID, e.result.callID}
		if earlier, ok := inPost[k]; ok {
			if err := s.judgeRepeat(e.result, earlier.same(e.result)); err != nil {
				return err
			}
		}
		inPost[k] = e.result
	}
	return nil
}

// apply applies one event and reports whether it was the first accepted result of a call.
func (s *session) apply(e *inputEvent) (first bool, err error) {
	if e.result == nil {
		if err := s.checkOther(e); err != nil {
			return false, err
		}
		s.applyOther(e)
		return false, nil
	}
	v, err := s.judge(e.result)
	if err != nil {
		return false, err
	}
	c := s.calls[callKey{e.result.turnID, e.result.callID}]
	if v == verdictRepeat {
		s.sim.stats.duplicate(s.id, c)
		if c.outputItem != nil { // The service announces the output again.
			s.emitItem("agent.session.turn.item.added", c.outputItem)
		}
		return false, nil
	}
	s.sim.stats.resultsAccepted.Add(1)
	s.accept(c, e.result)
	return true, nil
}

func (s *session) checkOther(e *inputEvent) error {
	switch {
	case e.requestID != "":
		if s.side == nil || !s.side.approval(e.requestID) {
			return invalidRequest("Unknown pending computer use approval request: %s", e.requestID)
		}
	case e.kind == "agent.session.input.message":
		if s.initial != nil {
			return conflict("session initial input is still pending")
		}
		if e.input.plan != nil {
			return nil
		}
		var err error
		if e.input.plan, err = planFor(e.input.text, s.agent.tools); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) applyOther(e *inputEvent) {
	switch e.kind {
	case "agent.session.input.message":
		if s.current() != nil {
			s.queued = append(s.queued, e.input)
			return
		}
		s.startTurn(e.input)
	case "agent.session.input.cancel":
		if t := s.current(); t != nil {
			s.endTurn(t, turnCancelled, "")
		}
	}
}
