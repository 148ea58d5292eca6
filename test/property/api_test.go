package property_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// service is the model of the API: sessions whose turns list calls until they are
// answered.
type service struct {
	w *world

	mu       sync.Mutex
	sessions map[string]*apiSession
	faults   []fault
	// deaf: nothing that is accepted is applied, a planted fault.
	deaf bool
}

type apiSession struct {
	turns   []*apiTurn
	deleted bool
}

type apiTurn struct {
	id        string
	cancelled bool
	calls     []*required
}

// required is a call and the answer that was applied, if any.
type required struct {
	call.Call
	applied string
}

// list adds a turn and gives the keys of its calls.
func (a *service) list(session, turn string, calls []call.Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &apiTurn{id: turn}
	for _, c := range calls {
		t.calls = append(t.calls, &required{Call: c})
	}
	s := a.sessions[session]
	s.turns = append(s.turns, t)
}

// cancel ends the latest turn of the session that still waits for answers.
func (a *service) cancel(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range slices.Backward(a.sessions[session].turns) {
		if !t.cancelled && slices.ContainsFunc(t.calls, func(r *required) bool { return r.applied == "" }) {
			t.cancelled = true
			return
		}
	}
}

func (a *service) delete(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions[session].deleted = true
}

func (a *service) exists(session string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.sessions[session].deleted
}

// fail makes the next submission meet a fault.
func (a *service) fail(f fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = append(a.faults, f)
}

func (a *service) heal() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = nil
}

// waiting lists the calls that are neither answered nor cancelled.
func (a *service) waiting() []call.Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []call.Key
	for _, s := range a.sessions {
		for _, c := range s.pending() {
			out = append(out, c.Key)
		}
	}
	return out
}

func (s *apiSession) pending() []call.Call {
	var out []call.Call
	if s.deleted {
		return nil
	}
	for _, t := range s.turns {
		if t.cancelled {
			continue
		}
		for _, r := range t.calls {
			if r.applied == "" {
				out = append(out, r.Call)
			}
		}
	}
	return out
}

var errGoneSession = &call.Refusal{Class: call.RefusedGone, Status: 404, Err: errors.New("no such session")}

// Session retrieves a session.
func (a *service) Session(_ context.Context, id string) (call.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[id]
	if s == nil || s.deleted {
		return call.Session{}, errGoneSession
	}
	got := call.Session{ID: id, Status: "requires_action", Calls: s.pending()}
	return got, nil
}

// Submit takes a batch as a whole or refuses it as a whole.
func (a *service) Submit(_ context.Context, b call.Batch) error {
	a.w.check.submitted(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	f := fault("")
	if len(a.faults) > 0 {
		f, a.faults = a.faults[0], a.faults[1:]
	}
	busy := &call.Refusal{Class: call.RefusedBusy, Status: 503, RetryAfter: 50 * time.Millisecond, Err: errors.New(string(f))}
	if f == refused {
		return busy
	}
	type pair struct {
		r    *required
		text string
	}
	var taken []pair
	for _, answer := range b.Answers {
		r, err := a.find(answer)
		if err != nil {
			return err
		}
		taken = append(taken, pair{r, string(answer.AppendEvent(nil))})
	}
	apply := func() {
		for _, p := range taken {
			if p.r.applied == "" {
				p.r.applied = p.text
				a.w.trace("%s applied", short(p.r.Key))
			}
		}
	}
	switch {
	case a.deaf:
	case f == lost:
		a.w.trace("submission of %d accepted and lost", len(taken))
	case f == lagging:
		time.AfterFunc(80*time.Millisecond, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			apply()
		})
	case f == unheard:
		apply()
		return busy
	default:
		apply()
	}
	return nil
}

// find looks a call up to be answered.
func (a *service) find(answer call.Answer) (*required, error) {
	s := a.sessions[answer.Session]
	if s == nil || s.deleted {
		return nil, errGoneSession
	}
	for _, t := range s.turns {
		for _, r := range t.calls {
			if r.Key != answer.Key {
				continue
			}
			switch text := string(answer.AppendEvent(nil)); {
			case r.applied == text:
				return r, nil
			case r.applied != "" || t.cancelled:
				return nil, &call.Refusal{Class: call.RefusedConflict, Status: 409, CallID: answer.Key.Call, Err: errors.New("conflict")}
			}
			return r, nil
		}
	}
	return nil, &call.Refusal{Class: call.RefusedUnknownCall, Status: 404, CallID: answer.Key.Call, Err: errors.New("unknown call")}
}
