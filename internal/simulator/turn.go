package simulator

import (
	"slices"
	"time"
)

type turnStatus string

const (
	turnQueued     turnStatus = "queued"
	turnInProgress turnStatus = "in_progress"
	turnWaiting    turnStatus = "waiting"
	turnCompleted  turnStatus = "completed"
	turnFailed     turnStatus = "failed"
	turnCancelled  turnStatus = "cancelled"
)

// turn is one root turn of a session; the session's mu guards it.
type turn struct {
	session     *session
	id          string
	subagentID  string
	status      turnStatus
	createdAt   int64
	startedAt   int64
	completedAt int64
	errorCode   string
	promptCache []byte

	plan    planner
	calls   []*call // distinct calls in the order they were required
	outputs int     // next output_index
	// firstItem is the index of the turn's first item in the session's items.
	firstItem int
	// The current round: calls not yet required, and blocking calls not yet answered.
	upcoming []ScriptCall
	delayed  []*delayedCall
	open     int
	answered int // answers of this round
	stepping bool
}

// delayedCall is a call that is required when its time comes.
type delayedCall struct {
	call ScriptCall
	due  time.Time
}

func (t *turn) ended() bool {
	return t.status == turnCompleted || t.status == turnFailed || t.status == turnCancelled
}

func (t *turn) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, t.id)
	b = append(b, `,"object":"agent.session.turn"`...)
	b = appendStringField(b, "session_id", t.session.id)
	b = appendStringField(b, "agent_id", t.session.agent.id)
	b = appendKey(b, "subagent_id")
	b = appendStringOrNull(b, t.subagentID)
	b = appendStringField(b, "status", string(t.status))
	b = appendIntField(b, "created_at", t.createdAt)
	b = appendTimeField(b, "started_at", t.startedAt)
	b = appendTimeField(b, "completed_at", t.completedAt)
	b = appendKey(b, "error")
	if t.errorCode == "" {
		b = append(b, "null"...)
	} else {
		b = append(b, `{"code":`...)
		b = appendString(b, t.errorCode)
		b = append(b, `,"message":"The turn failed."}`...)
	}
	b = append(b, `,"usage":null`...)
	return append(appendRawField(b, "prompt_cache_options", t.promptCache), '}')
}

// current returns the turn that is running, or nil. s.mu must be held, as for all methods below.
func (s *session) current() *turn {
	if n := len(s.turns); n > 0 && !s.turns[n-1].ended() {
		return s.turns[n-1]
	}
	return nil
}

// startTurn opens a turn for one input. Its plan was made when the input was accepted; if a script's function was
// removed since, the turn fails.
func (s *session) startTurn(input userInput) {
	t := &turn{
		session: s, id: newID("turn_"), status: turnQueued, createdAt: unixNow(), promptCache: s.promptCache,
		firstItem: len(s.items),
	}
	s.turns = append(s.turns, t)
	s.sim.stats.turns.Add(1)
	s.emitTurn("agent.session.turn.created", t)
	s.addItem(&item{id: newID("msg_"), kind: itemUserMessage, turn: t, status: itemCompleted, content: input.content})
	s.setStatus(statusInProgress)
	s.emitSession("agent.session.in_progress")
	s.sim.hooks.notify(s, "agent.session.in_progress")
	t.status = turnInProgress
	t.startedAt = unixNow()
	s.emitTurn("agent.session.turn.in_progress", t)

	if scripted, ok := input.plan.(*scriptedTurn); ok {
		if _, missing := scripted.script.missing(s.agent.tools); missing {
			s.endTurn(t, turnFailed, "invalid_request")
			return
		}
	}
	t.plan = input.plan
	s.advance(t)
}

// advance takes the next step of the plan, after the model's thinking time.
func (s *session) advance(t *turn) {
	if t.stepping {
		return
	}
	t.stepping = true
	s.later(s.sim.cfg.ModelDelay, func() {
		t.stepping = false
		if t.ended() {
			return
		}
		next := t.plan.next(t.answers)
		switch {
		case len(next.calls) > 0:
			s.startRound(t, next.calls)
		case next.fail != "":
			s.endTurn(t, turnFailed, next.fail)
		default:
			s.sayText(t, next.say)
			s.endTurn(t, turnCompleted, "")
		}
	})
}

func (t *turn) answers() []answer {
	answers := make([]answer, 0, len(t.calls))
	for _, c := range t.calls {
		if c.state == callAnswered {
			answers = append(answers, c.answer())
		}
	}
	return answers
}

// startRound requires the calls of one round that are not delayed.
func (s *session) startRound(t *turn, calls []ScriptCall) {
	t.open, t.answered = 0, 0
	t.upcoming = t.upcoming[:0]
	now := make([]ScriptCall, 0, len(calls))
	for _, c := range calls {
		switch {
		case c.AfterMS > 0:
			t.open++ // keeps the round open until the call is there
			delay := time.Duration(c.AfterMS) * time.Millisecond
			d := &delayedCall{call: c, due: time.Now().Add(delay)}
			t.delayed = append(t.delayed, d)
			s.requireLater(t, d, delay)
		case c.AfterResults > 0:
			t.upcoming = append(t.upcoming, c)
		default:
			now = append(now, c)
		}
	}
	s.require(t, now)
	s.roundChanged(t)
}

func (s *session) requireLater(t *turn, d *delayedCall, delay time.Duration) {
	s.later(delay, func() {
		if t.ended() {
			return
		}
		t.delayed = slices.DeleteFunc(t.delayed, func(other *delayedCall) bool { return other == d })
		t.open--
		s.require(t, []ScriptCall{d.call})
		s.roundChanged(t)
	})
}

// roundChanged releases the delayed calls whose time has come and steps on when the round has nothing open.
func (s *session) roundChanged(t *turn) {
	due := func(c ScriptCall) bool { return c.AfterResults <= t.answered || t.open == 0 }
	if i := slices.IndexFunc(t.upcoming, due); i >= 0 {
		var now, still []ScriptCall
		for _, c := range t.upcoming {
			if due(c) {
				now = append(now, c)
			} else {
				still = append(still, c)
			}
		}
		t.upcoming = still
		s.require(t, now)
	}
	blocks := func(r *requirement) bool { return !r.call.async }
	if s.status == statusRequiresAction && !slices.ContainsFunc(s.listed, blocks) {
		s.setStatus(statusInProgress)
		t.status = turnInProgress
		s.emitSession("agent.session.in_progress")
		s.sim.hooks.notify(s, "agent.session.in_progress")
	}
	if t.open == 0 && len(t.upcoming) == 0 {
		s.advance(t)
	}
}

// sayText emits the assistant's message as the service streams it.
func (s *session) sayText(t *turn, text string) {
	it := &item{
		id: newID("msg_"), kind: itemAssistantMessage, turn: t, status: itemInProgress, outputIndex: t.nextOutput(),
	}
	s.addItem(it)
	s.emitTextPart("agent.session.turn.content_part.added", it, "part", func(b []byte) []byte {
		return append(b, `{"type":"output_text","text":"","annotations":[]}`...)
	})
	if text != "" {
		s.emitTextPart("agent.session.turn.output_text.delta", it, "delta", func(b []byte) []byte { return appendString(b, text) })
	}
	it.text = text
	s.emitTextPart("agent.session.turn.output_text.done", it, "text", func(b []byte) []byte { return appendString(b, text) })
	s.emitTextPart("agent.session.turn.content_part.done", it, "part", func(b []byte) []byte { return appendOutputText(b, text) })
	it.status = itemCompleted
	s.emitItem("agent.session.turn.item.done", it)
}

func (t *turn) nextOutput() int {
	t.outputs++
	return t.outputs - 1
}

// endTurn closes the turn, drops what it still required, and goes on with the next queued input.
func (s *session) endTurn(t *turn, status turnStatus, errorCode string) {
	if status != turnCompleted {
		s.dropOpenCalls(t)
	}
	t.status, t.errorCode, t.completedAt = status, errorCode, unixNow()
	t.plan, t.upcoming, t.delayed = nil, nil, nil
	switch status {
	case turnCompleted:
		s.sim.stats.turnsCompleted.Add(1)
	case turnFailed:
		s.sim.stats.turnsFailed.Add(1)
	default:
		s.sim.stats.turnsCancelled.Add(1)
	}
	s.emitTurnEnd("agent.session.turn."+string(status), t)
	s.setStatus(statusIdle)
	s.emitSession("agent.session.idle")
	s.sim.hooks.notify(s, "agent.session.idle")
	if len(s.queued) > 0 {
		input := s.queued[0]
		s.queued = s.queued[1:]
		s.startTurn(input)
	}
}

func (s *session) setStatus(status sessionStatus) {
	s.status = status
	s.lastActive = unixNow()
}
