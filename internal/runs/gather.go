package runs

import (
	"errors"
	"time"
)

// unsent are the calls whose outputs no request carries yet.
func (r *runner) unsent() []pendingCall {
	sent := map[Ref]bool{}
	for _, round := range r.run.Rounds {
		for _, ref := range round.Sent {
			sent[ref] = true
		}
	}
	var calls []pendingCall
	for n, round := range r.run.Rounds {
		for _, c := range round.Calls {
			if ref := r.ref(n+1, c.Index); !sent[ref] {
				calls = append(calls, pendingCall{ref: ref, call: c, response: round.Response})
			}
		}
	}
	return calls
}

// awaitsAsync says whether an earlier call may still be answered.
func (r *runner) awaitsAsync() bool { return len(r.unsent()) > 0 }

// restore puts the calls of an earlier owner on the board.
func (r *runner) restore() error {
	r.clear()
	for _, p := range r.unsent() {
		raw, err := r.e.parts.Store.Item(r.ctx, r.id, p.ref)
		if err != nil {
			return lost("an item", err)
		}
		if err := r.present(p.ref, p.call, readItem(raw)); err != nil {
			return err
		}
	}
	r.show()
	return nil
}

// present lets a call be run, unless it has its output. A search for tools is answered
// here.
func (r *runner) present(ref Ref, c Call, it item) error {
	store := r.e.parts.Store
	p := &pendingCall{ref: ref, call: c, response: r.run.Rounds[ref.Round-1].Response, item: it}
	if r.hasOutput(ref) {
		return nil
	}
	if c.Kind == ToolSearchCall {
		if _, err := store.PutOutput(r.ctx, r.id, Output{Ref: ref, Item: search(it, r.e.parts.Functions)}); err != nil {
			return err
		}
		p.done = true
		r.offer(p)
		return nil
	}
	switch _, err := store.Output(r.ctx, r.id, ref); {
	case err == nil:
		p.done = true
	case !errors.Is(err, ErrNotFound):
		return err
	}
	if !r.offer(p) || p.done {
		return nil
	}
	r.tell(Notice{Type: NoticeDispatched, Round: ref.Round, Response: p.response, Call: c.ID, Function: c.Function})
	if !r.attached {
		if err := r.d.Attach(r.ctx, r.id); err != nil {
			return err
		}
		r.attached = true
	}
	r.d.Nudge(r.id, "run")
	return nil
}

// attachAgain is how often a run whose calls are awaited is attached once more: a store
// that lost its data has lost the list of what is watched too.
const attachAgain = 30 * time.Second

// lookAgain is how often outputs are looked for that another replica may have stored
// when it was about to lose the run.
const lookAgain = 5 * time.Second

// lookForOutputs looks whether the store has outputs that the board does not know of.
func (r *runner) lookForOutputs() error {
	for _, p := range r.unsent() {
		if r.hasOutput(p.ref) {
			continue
		}
		switch _, err := r.e.parts.Store.Output(r.ctx, r.id, p.ref); {
		case err == nil:
			r.mu.Lock()
			known := r.board.byRef[p.ref]
			r.mu.Unlock()
			if known != nil {
				r.answered(known)
			}
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	return nil
}

// gather waits until the calls of the response have their outputs and begins the next
// round with them. Calls that are async need not be waited for; those of earlier rounds
// are answered as their outputs come.
func (r *runner) gather() error {
	for _, p := range r.unsent() {
		if r.hasOutput(p.ref) {
			continue
		}
		raw, err := r.e.parts.Store.Item(r.ctx, r.id, p.ref)
		if err != nil {
			return lost("an item", err)
		}
		if err := r.present(p.ref, p.call, readItem(raw)); err != nil {
			return err
		}
	}
	lastAttached := time.Now()
	for !r.cancelled.Load() && time.Now().Before(r.run.Deadline) && r.ctx.Err() == nil {
		if sent, ready := r.ready(); ready {
			return r.nextRound(sent)
		}
		r.await(lookAgain)
		if err := r.lookForOutputs(); err != nil {
			return err
		}
		if time.Since(lastAttached) >= attachAgain {
			if err := r.d.Attach(r.ctx, r.id); err != nil {
				return err
			}
			r.d.Nudge(r.id, "run")
			lastAttached = time.Now()
		}
	}
	return r.ctx.Err()
}

// ready gives the outputs for the next request, in the order of the calls; not ready
// while one is missing that the API wants in it.
func (r *runner) ready() (sent []Ref, ready bool) {
	ready = true
	for _, p := range r.unsent() {
		switch {
		case r.hasOutput(p.ref):
			sent = append(sent, p.ref)
		case !p.call.Async:
			ready = false
		}
	}
	return sent, ready && len(sent) > 0
}
