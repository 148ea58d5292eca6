package simulator

import (
	"context"
	"time"
)

// play produces the response, in the time that the model and the script take. It stops when the response is cancelled,
// and leaves it unfinished when the simulator is closed.
func (r *response) play() {
	r.mu.Lock()
	r.emitSelf("response.created")
	if r.status == responseQueued {
		r.emitSelf("response.queued")
	}
	r.mu.Unlock()
	if r.background && !r.after(r.sim.cfg.QueueDelay) {
		return
	}
	if !r.step(func() {
		r.status = responseInProgress
		r.emitSelf("response.in_progress")
	}) || !r.after(r.sim.cfg.ModelDelay) {
		return
	}
	start := time.Now()
	for i := range r.generation.Items {
		u := &r.generation.Items[i]
		if !r.after(u.After-time.Since(start)) || !r.speak(i, u) {
			return
		}
	}
	r.step(r.finish)
}

// speak produces one item.
func (r *response) speak(index int, u *utterance) bool {
	if r.streamed {
		for _, event := range u.events(index) {
			last := event.kind == "response.output_item.done"
			if !r.after(r.sim.cfg.StreamDelay) || !r.step(func() {
				if last {
					r.output = append(r.output, u.item())
				}
				r.emit(event.kind, event.fields)
			}) {
				return false
			}
		}
		return true
	}
	return r.step(func() { r.output = append(r.output, u.item()) })
}

// step does f with r.mu held, unless the response is over.
func (r *response) step(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.ended() {
		return false
	}
	f()
	return true
}

// finish ends the response as its generation says. r.mu must be held.
func (r *response) finish() {
	status := responseCompleted
	switch {
	case r.generation.Fail != "":
		status = responseFailed
	case r.generation.Incomplete != "":
		status = responseIncomplete
	}
	r.end(status)
}

// end closes the response. A cancelled one has no last event. r.mu must be held.
func (r *response) end(status responseStatus) {
	r.status, r.completed = status, time.Now()
	s := r.sim
	s.responses.ended(r)
	if r.conversation != nil {
		r.conversation.release(r, status == responseCompleted || status == responseIncomplete)
	}
	if r.background {
		s.hooks.notifyResponse(r.id, "response."+string(status))
	}
	if status == responseCancelled {
		r.wake()
	} else {
		r.emitSelf("response." + string(status))
	}
	s.changed()
}

// wait returns when the response has ended; it reports false when the client leaves or the simulator is closed first.
func (r *response) wait(client context.Context) bool {
	for {
		r.mu.Lock()
		ended, changed := r.status.ended(), r.changed
		r.mu.Unlock()
		if ended {
			return true
		}
		select {
		case <-changed:
		case <-client.Done():
			return false
		case <-r.sim.ctx.Done():
			return false
		}
	}
}
