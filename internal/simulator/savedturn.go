package simulator

import (
	"errors"
	"time"
)

// savedTurn is a turn with its calls in the state file.
type savedTurn struct {
	ID          string             `json:"id"`
	Status      turnStatus         `json:"status"`
	CreatedAt   int64              `json:"created_at"`
	StartedAt   int64              `json:"started_at,omitempty"`
	CompletedAt int64              `json:"completed_at,omitempty"`
	ErrorCode   string             `json:"error_code,omitempty"`
	PromptCache []byte             `json:"prompt_cache,omitempty"`
	Plan        *savedPlan         `json:"plan,omitempty"`
	Calls       []savedCall        `json:"calls,omitempty"`
	Outputs     int                `json:"outputs"`
	FirstItem   int                `json:"first_item"`
	Upcoming    []savedScriptCall  `json:"upcoming,omitempty"`
	Delayed     []savedDelayedCall `json:"delayed,omitempty"`
	Open        int                `json:"open,omitempty"`
	Answered    int                `json:"answered,omitempty"`
	Stepping    bool               `json:"stepping,omitempty"`
}

type savedDelayedCall struct {
	Call savedScriptCall `json:"call"`
	Due  time.Time       `json:"due"`
}

// savedCall is a call; its output and error are the submitted bytes.
type savedCall struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	State        callState `json:"state"`
	Async        bool      `json:"async,omitempty"`
	RegisteredAt time.Time `json:"registered_at,omitzero"`
	Success      bool      `json:"success,omitempty"`
	Output       []byte    `json:"output"`
	Error        []byte    `json:"error"`
}

// savedItem names its turn and its call by their places, the call's among those of the turn.
type savedItem struct {
	ID          string     `json:"id"`
	Kind        itemKind   `json:"kind"`
	Status      itemStatus `json:"status"`
	Turn        int        `json:"turn"`
	OutputIndex int        `json:"output_index,omitempty"`
	Content     []byte     `json:"content,omitempty"`
	Text        string     `json:"text,omitempty"`
	Call        int        `json:"call,omitempty"`
	Name        string     `json:"name,omitempty"`
	Arguments   []byte     `json:"arguments"`
}

func saveTurn(t *turn) savedTurn {
	return savedTurn{
		ID: t.id, Status: t.status, CreatedAt: t.createdAt, StartedAt: t.startedAt, CompletedAt: t.completedAt,
		ErrorCode: t.errorCode, PromptCache: t.promptCache, Plan: savePlan(t.plan),
		Calls: each(t.calls, func(c *call) savedCall {
			return savedCall{c.id, c.name, c.state, c.async, c.registeredAt, c.success, c.output, c.errText}
		}),
		Outputs: t.outputs, FirstItem: t.firstItem, Upcoming: each(t.upcoming, saveScriptCall),
		Delayed: each(t.delayed, func(d *delayedCall) savedDelayedCall {
			return savedDelayedCall{saveScriptCall(d.call), d.due}
		}),
		Open: t.open, Answered: t.answered, Stepping: t.stepping,
	}
}

func (s *session) restoreTurn(d savedTurn) error {
	t := &turn{
		session: s, id: d.ID, status: d.Status, createdAt: d.CreatedAt, startedAt: d.StartedAt,
		completedAt: d.CompletedAt, errorCode: d.ErrorCode, promptCache: d.PromptCache, outputs: d.Outputs,
		firstItem: d.FirstItem, upcoming: each(d.Upcoming, savedScriptCall.restore),
		delayed: each(d.Delayed, func(c savedDelayedCall) *delayedCall { return &delayedCall{c.Call.restore(), c.Due} }),
		open:    d.Open, answered: d.Answered, stepping: d.Stepping,
	}
	var err error
	if t.plan, err = d.Plan.restore(); err != nil {
		return err
	}
	if t.plan == nil && !t.ended() {
		return errors.New("a running turn has no plan")
	}
	for _, c := range d.Calls {
		made := &call{
			id: c.ID, turn: t, name: c.Name, state: c.State, async: c.Async, registeredAt: c.RegisteredAt,
			success: c.Success, output: c.Output, errText: c.Error,
		}
		t.calls = append(t.calls, made)
		if s.calls == nil {
			s.calls = make(map[callKey]*call)
		}
		s.calls[callKey{t.id, c.ID}] = made
	}
	s.turns = append(s.turns, t)
	return nil
}

// saveItems copies the history.
func (s *session) saveItems() []savedItem {
	turns, calls := make(map[*turn]int), make(map[*call]int)
	for i, t := range s.turns {
		turns[t] = i
		for j, c := range t.calls {
			calls[c] = j
		}
	}
	return each(s.items, func(it *item) savedItem {
		return savedItem{
			ID: it.id, Kind: it.kind, Status: it.status, Turn: turns[it.turn], OutputIndex: it.outputIndex,
			Content: it.content, Text: it.text, Call: calls[it.call], Name: it.name, Arguments: it.arguments,
		}
	})
}

// restoreItem also puts a call that waits for its result back into required_actions, which hold the calls in the order
// of their items.
func (s *session) restoreItem(d savedItem) error {
	if d.Turn < 0 || d.Turn >= len(s.turns) {
		return errors.New("an item belongs to no turn")
	}
	t := s.turns[d.Turn]
	it := &item{
		id: d.ID, kind: d.Kind, status: d.Status, turn: t, outputIndex: d.OutputIndex, content: d.Content, text: d.Text,
		name: d.Name, arguments: d.Arguments,
	}
	s.items = append(s.items, it)
	if d.Kind != itemFunctionCall && d.Kind != itemFunctionOutput {
		return nil
	}
	if d.Call < 0 || d.Call >= len(t.calls) {
		return errors.New("an item belongs to no call")
	}
	c := t.calls[d.Call]
	it.call = c
	if d.Kind == itemFunctionOutput {
		c.outputItem = it
		return nil
	}
	c.items = append(c.items, it)
	if c.waits() && (!c.async || s.sim.sw.AsyncListed) {
		s.listed = append(s.listed, &requirement{call: c, name: it.name, arguments: it.arguments})
	}
	return nil
}
