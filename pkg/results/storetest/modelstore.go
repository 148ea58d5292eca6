package storetest

import (
	"slices"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// model is the contract as plainly as it can be put, without time: one request
// after the other, each element after the other.
type model struct{ turns map[[2]string]*modelTurn }

type modelTurn struct {
	fence uint64
	calls map[string]*results.Record
}

func (m *model) turn(k call.Key) *modelTurn {
	id := [2]string{k.Session, k.Turn}
	if m.turns[id] == nil {
		m.turns[id] = &modelTurn{calls: map[string]*results.Record{}}
	}
	return m.turns[id]
}

// refuses says that the turn has seen a higher fence. A turn without calls
// remembers nothing.
func (t *modelTurn) refuses(fence uint64) bool {
	if fence < t.fence {
		return true
	}
	if len(t.calls) > 0 {
		t.fence = fence
	}
	return false
}

func (m *model) claim(fence uint64, claims []results.Claim) ([]results.Record, error) {
	answers := make([]results.Record, len(claims))
	var err error
	for i, c := range claims {
		t := m.turn(c.Key)
		if t.refuses(fence) {
			err = results.ErrFenced
			continue
		}
		if t.calls[c.Key.Call] == nil {
			t.calls[c.Key.Call] = &results.Record{Key: c.Key, Function: c.Function, State: c.State}
			step(t.calls[c.Key.Call], "")
			t.fence = fence
		}
		answers[i] = *t.calls[c.Key.Call]
		answers[i].History = nil
	}
	return answers, err
}

func (m *model) complete(fences []uint64, completions []results.Completion) []results.Completed {
	answers := make([]results.Completed, len(completions))
	for i, c := range completions {
		t := m.turn(c.Key)
		known := t.calls[c.Key.Call]
		switch {
		case t.refuses(fences[i]):
			answers[i].Err = results.ErrFenced
			continue
		case known == nil && !c.Adopt:
			answers[i].Verdict = results.Unknown
			continue
		case known == nil:
			known = &results.Record{Key: c.Key, Function: c.Function, State: call.Queued, Attempt: c.Attempt}
			t.calls[c.Key.Call] = known
			t.fence = fences[i]
		}
		answers[i].Verdict = results.Superseded
		switch {
		case known.State.Open():
			known.State = call.Failed
			if c.Result.Success {
				known.State = call.Succeeded
			}
			known.OutcomeID, known.Result = c.OutcomeID, &c.Result
			step(known, c.Note)
			answers[i].Verdict = results.Saved
		case known.OutcomeID == c.OutcomeID:
			answers[i].Verdict = results.Saved
		}
		answers[i].Record = *known
		answers[i].Record.History = nil
		if answers[i].Verdict == results.Saved {
			answers[i].Record.Result = nil
		}
	}
	return answers
}

func (m *model) move(fence uint64, moves []results.Move) []results.Moved {
	answers := make([]results.Moved, len(moves))
	for i, mv := range moves {
		t := m.turn(mv.Key)
		if t.refuses(fence) {
			answers[i].Err = results.ErrFenced
			continue
		}
		known := t.calls[mv.Key.Call]
		if known == nil {
			continue
		}
		attempt, handover := known.Attempt, known.Handover
		if mv.Attempt != 0 {
			attempt = mv.Attempt
		}
		if mv.Handover != 0 {
			handover = mv.Handover
		}
		saves := mv.To == call.Succeeded || mv.To == call.Failed
		switch {
		case known.State == mv.To && attempt == known.Attempt && handover == known.Handover:
			if mv.Note != "" && mv.Note != known.History[len(known.History)-1].Note {
				step(known, mv.Note)
			}
			answers[i].Done = true
		case !saves && slices.Contains(call.Transitions()[known.State], mv.To):
			known.State, known.Attempt, known.Handover = mv.To, attempt, handover
			step(known, mv.Note)
			if mv.To.Final() {
				known.Result = nil
			}
			answers[i].Done = true
		}
		answers[i].State = known.State
	}
	return answers
}

// step adds what is true of the call now to its history.
func step(r *results.Record, note string) {
	s := results.Step{State: r.State, Attempt: r.Attempt, Handover: r.Handover, Note: note}
	r.History = append(slices.Clip(r.History), s)
}

func (m *model) session(session string) []results.Record {
	var records []results.Record
	for id, t := range m.turns {
		if id[0] != session {
			continue
		}
		for _, r := range t.calls {
			records = append(records, *r)
		}
	}
	return records
}
