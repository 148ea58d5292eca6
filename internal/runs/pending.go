package runs

import (
	"github.com/callfan/callfan/pkg/call"
)

// pendingCall is a call that may be run now.
type pendingCall struct {
	ref      Ref
	call     Call
	response string
	item     item
	done     bool
}

// board is what the dispatcher sees of a run: the calls to run and whether they have
// outputs. It is shared, under the runner's lock.
type board struct {
	shown bool
	order []*pendingCall
	byKey map[call.Key]*pendingCall
	byRef map[Ref]*pendingCall
}

// clear empties the board and hides it.
func (r *runner) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.board = board{byKey: map[call.Key]*pendingCall{}, byRef: map[Ref]*pendingCall{}}
}

// show lets the dispatcher see the board.
func (r *runner) show() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.board.shown = true
}

// shown says whether the dispatcher sees the board.
func (r *runner) shown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.board.shown
}

// offer puts a call on the board; false when it is there.
func (r *runner) offer(p *pendingCall) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := call.Key{Session: r.id, Turn: p.response, Call: p.call.ID}
	if r.board.byRef[p.ref] != nil || r.board.byKey[key] != nil {
		return false
	}
	r.board.order = append(r.board.order, p)
	r.board.byKey[key], r.board.byRef[p.ref] = p, p
	return true
}

// pending finds a call on the board; not shown while the board is not known.
func (r *runner) pending(key call.Key) (p *pendingCall, shown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.board.byKey[key], r.board.shown
}

// answered notes that a call has its output.
func (r *runner) answered(p *pendingCall) {
	r.mu.Lock()
	first := !p.done
	p.done = true
	r.mu.Unlock()
	if first {
		r.tell(Notice{Type: NoticeAnswered, Round: p.ref.Round, Response: p.response, Call: p.call.ID, Function: p.call.Function})
	}
}

// hasOutput says whether a call has its output.
func (r *runner) hasOutput(ref Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.board.byRef[ref]
	return p != nil && p.done
}

// pendingCalls are the calls without output, for the dispatcher; not ok while the board
// is not known.
func (r *runner) pendingCalls() (calls []call.Call, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.board.order {
		if p.done || p.call.Kind == ToolSearchCall {
			continue
		}
		f, _ := r.e.parts.Functions.Function(p.call.Function)
		calls = append(calls, call.Call{
			Key:      call.Key{Session: r.id, Turn: p.response, Call: p.call.ID},
			Function: p.call.Function, Arguments: p.item.arguments(f),
		})
	}
	return calls, r.board.shown
}
