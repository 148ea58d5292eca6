package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// event is a line of the executor's event log.
type event struct {
	Event          string `json:"event"`
	Function       string `json:"function"`
	CallID         string `json:"call_id"`
	Attempt        int    `json:"attempt"`
	IdempotencyKey string `json:"idempotency_key"`
	AtMS           int64  `json:"at_ms"`
	PID            int    `json:"pid"`
}

// events are the lines about a call, all of them for the empty id.
func (r *rig) events(callID string) []event {
	text, err := os.ReadFile(r.journalPath)
	if err != nil {
		return nil
	}
	var events []event
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			e = event{Event: fmt.Sprintf("unreadable line %q", line)}
		}
		if callID == "" || e.CallID == callID {
			events = append(events, e)
		}
	}
	return events
}

// count is how often the event was logged about the call.
func (r *rig) count(p *placed, name string) int {
	n := 0
	for _, e := range r.events(p.Key.Call) {
		if e.Event == name {
			n++
		}
	}
	return n
}

// started waits until the call's handler was entered.
func (t *trial) started(p *placed) {
	t.eventually(patience, func() bool { return t.count(p, "start") > 0 }, "the handler of %s was not entered", p.Function)
}

// runs checks how often the handler was entered.
func (t *trial) runs(p *placed, want int) {
	if got := t.count(p, "start"); got != want {
		t.failf("the handler of %s was entered %d times; want %d", p.Function, got, want)
	}
}
