package simulator

import (
	"encoding/json"
	"slices"
	"time"
)

type callState uint8

const (
	callPending   callState = iota // required, no result accepted
	callAccepted                   // a result was accepted but is not applied yet (Faults.ListedAfterAccept)
	callAnswered                   // the result is applied
	callCancelled                  // its turn ended without a result
)

// call is one distinct (turn, call id). The session's mu guards it.
type call struct {
	id           string
	turn         *turn
	name         string
	state        callState
	async        bool
	registeredAt time.Time // results before are refused as unknown; zero means at once
	items        []*item   // its function_call items; several when a script lists it twice
	outputItem   *item

	success bool
	output  json.RawMessage // as sent; nil when absent
	errText json.RawMessage // as sent; nil when absent
}

// requirement is one entry of required_actions. A call that is listed twice has two.
type requirement struct {
	call      *call
	name      string
	arguments json.RawMessage
}

// waits reports whether no result of the call is applied yet and one still can be.
func (c *call) waits() bool { return c.state == callPending || c.state == callAccepted }

func (c *call) answer() answer {
	a := answer{name: c.name, success: c.success, text: outputText(c.output)}
	if !c.success {
		a.text = outputText(c.errText)
	}
	return a
}

// require adds calls to required_actions and tells streams and webhooks.
func (s *session) require(t *turn, scripted []ScriptCall) {
	if len(scripted) == 0 {
		return
	}
	wasWaiting := s.status == statusRequiresAction
	blocking := false
	for _, sc := range scripted {
		c := s.newCall(t, sc)
		it := &item{
			id: newID("fc_"), kind: itemFunctionCall, turn: t, status: itemInProgress, call: c,
			name: sc.Name, arguments: sc.Arguments, outputIndex: t.nextOutput(),
		}
		c.items = append(c.items, it)
		s.addItem(it)
		if c.async && !s.sim.sw.AsyncListed {
			continue
		}
		s.listed = append(s.listed, &requirement{call: c, name: sc.Name, arguments: sc.Arguments})
		blocking = blocking || !c.async
	}
	if !blocking {
		return
	}
	s.setStatus(statusRequiresAction)
	t.status = turnWaiting
	if !wasWaiting || s.sim.sw.ReemitOnAdded {
		s.emitSession("agent.session.requires_action")
	}
	if !wasWaiting || s.sim.sw.WebhookOnAdded {
		s.sim.hooks.notify(s, "agent.session.action_required")
	}
}

// newCall returns the call of sc, which is a known one when a script lists a forced id twice.
func (s *session) newCall(t *turn, sc ScriptCall) *call {
	id := sc.CallID
	if id == "" {
		id = newID("call_")
	} else if known, ok := s.calls[callKey{t.id, id}]; ok {
		return known
	}
	fn, _ := s.agent.tools.function(sc.Name)
	c := &call{id: id, turn: t, name: sc.Name, async: fn.async}
	if delay := s.sim.faults.registrationDelay(); delay > 0 {
		c.registeredAt = time.Now().Add(delay)
	}
	if s.calls == nil {
		s.calls = make(map[callKey]*call)
	}
	s.calls[callKey{t.id, id}] = c
	t.calls = append(t.calls, c)
	if !c.async {
		t.open++
	}
	s.sim.stats.calls.Add(1)
	s.sim.stats.pending.Add(1)
	return c
}

// accept stores the first result of c and applies it, at once or after the fault's delay.
func (s *session) accept(c *call, r *toolResult) {
	c.state = callAccepted
	c.success, c.output, c.errText = r.success, r.output, r.errText
	s.lastActive = unixNow()
	s.applyLater(c)
}

func (s *session) applyLater(c *call) {
	s.later(s.sim.faults.listedAfterAccept(), func() {
		if c.state == callAccepted {
			s.applyResult(c)
		}
	})
}

// applyResult takes the call off required_actions and lets the turn go on.
func (s *session) applyResult(c *call) {
	c.state = callAnswered
	s.sim.stats.pending.Add(-1)
	s.listed = slices.DeleteFunc(s.listed, func(r *requirement) bool { return r.call == c })
	c.outputItem = &item{id: newID("fco_"), kind: itemFunctionOutput, turn: c.turn, status: itemCompleted, call: c}
	if !c.success {
		c.outputItem.status = itemFailed
	}
	s.addItem(c.outputItem)
	for _, it := range c.items {
		it.status = itemCompleted
		s.emitItem("agent.session.turn.item.done", it)
	}
	t := c.turn
	if c.async || t.ended() {
		return
	}
	t.open--
	t.answered++
	s.roundChanged(t)
}

// dropOpenCalls forgets the calls of a turn that ends without their results.
func (s *session) dropOpenCalls(t *turn) {
	for _, c := range t.calls {
		if c.waits() {
			c.state = callCancelled
			s.sim.stats.pending.Add(-1)
		}
	}
	s.listed = slices.DeleteFunc(s.listed, func(r *requirement) bool { return r.call.turn == t })
	for _, it := range s.items[t.firstItem:] {
		if it.turn == t && it.status == itemInProgress {
			it.status = itemIncomplete
		}
	}
}
