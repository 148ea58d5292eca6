package simulator

import (
	"sync"
	"time"
)

type responseStatus string

const (
	responseQueued     responseStatus = "queued"
	responseInProgress responseStatus = "in_progress"
	responseCompleted  responseStatus = "completed"
	responseFailed     responseStatus = "failed"
	responseIncomplete responseStatus = "incomplete"
	responseCancelled  responseStatus = "cancelled"
)

// response is one response of the Responses API. Everything below mu is guarded by it.
type response struct {
	sim        *Simulator
	seq        int64 // order of creation
	id         string
	created    time.Time
	background bool
	stored     bool
	streamed   bool   // created with stream, so that its events are kept
	echo       []byte // the repeated parameters, as JSON fields
	previous   string
	metadata   []byte
	pinned     bool // a fixture
	// base are the items before this response's own input.
	base, input  []*responseItem
	conversation *conversation // nil without
	generation   *generation

	mu        sync.Mutex
	status    responseStatus
	completed time.Time
	output    []*responseItem
	events    [][]byte
	kinds     []string      // the types of events
	changed   chan struct{} // closed and replaced with every change
}

func (st responseStatus) ended() bool { return st != responseQueued && st != responseInProgress }

// context are all items up to and with the output. r.mu must not be held.
func (r *response) context() []*responseItem {
	r.mu.Lock()
	defer r.mu.Unlock()
	items := make([]*responseItem, 0, len(r.base)+len(r.input)+len(r.output))
	return append(append(append(items, r.base...), r.input...), r.output...)
}

// append renders the response object. r.mu must be held.
func (r *response) append(b []byte) []byte {
	b = appendString(append(b, `{"id":`...), r.id)
	b = append(b, `,"object":"response"`...)
	b = appendIntField(b, "created_at", r.created.Unix())
	b = appendStringField(b, "status", string(r.status))
	b = appendBoolField(b, "background", r.background)
	completed := int64(0)
	if r.status == responseCompleted {
		completed = r.completed.Unix()
	}
	b = appendTimeField(b, "completed_at", completed)
	b = appendKey(b, "error")
	if r.status == responseFailed {
		b = appendString(append(b, `{"code":`...), r.generation.Fail)
		b = append(b, `,"message":"The model failed to answer."}`...)
	} else {
		b = append(b, "null"...)
	}
	b = appendKey(b, "incomplete_details")
	if r.status == responseIncomplete {
		b = append(appendString(append(b, `{"reason":`...), r.generation.Incomplete), '}')
	} else {
		b = append(b, "null"...)
	}
	b = append(b, r.echo...)
	b = append(appendKey(b, "output"), '[')
	size := 0
	for i, it := range r.output {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, it.raw...)
		size += len(it.raw)
	}
	b = append(b, ']')
	return append(r.appendUsage(b, size), '}')
}

// appendUsage renders token counts that are guessed from sizes; there are none before the end.
func (r *response) appendUsage(b []byte, outputBytes int) []byte {
	if !r.status.ended() || r.status == responseCancelled {
		return append(b, `,"usage":null`...)
	}
	in := 0
	for _, it := range r.base {
		in += len(it.raw)
	}
	for _, it := range r.input {
		in += len(it.raw)
	}
	in, out := in/4+1, outputBytes/4+1
	b = appendIntField(append(b, `,"usage":{"input_tokens_details":{"cached_tokens":0}`...), "input_tokens", int64(in))
	b = appendIntField(b, "output_tokens", int64(out))
	b = append(b, `,"output_tokens_details":{"reasoning_tokens":0}`...)
	return append(appendIntField(b, "total_tokens", int64(in+out)), '}')
}

// emit adds an event to those of a streamed response. r.mu must be held.
func (r *response) emit(kind string, fields []byte) {
	if r.streamed {
		b := appendString([]byte(`{"type":`), kind)
		b = appendIntField(b, "sequence_number", int64(len(r.events)))
		r.events = append(r.events, append(append(b, fields...), '}'))
		r.kinds = append(r.kinds, kind)
	}
	r.wake()
}

// emitSelf adds an event that carries the whole response.
func (r *response) emitSelf(kind string) {
	if !r.streamed {
		r.wake()
		return
	}
	r.emit(kind, r.append(appendKey(nil, "response")))
}

func (r *response) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// after waits; it reports false when the simulator is closed meanwhile.
func (r *response) after(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.sim.ctx.Done():
		return false
	}
}
