package simulator

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// serve streams the events of the response from a sequence number on, until it has ended, the client leaves, or the
// simulator closes.
func (r *response) serve(w http.ResponseWriter, req *http.Request, from int, obfuscate bool) {
	s := r.sim
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	out := streamWriter{w: w, rc: http.NewResponseController(w), sim: s}
	out.flush()
	s.stats.responseStreams.Add(1)
	var beat <-chan time.Time
	if s.sw.Heartbeat > 0 {
		ticker := time.NewTicker(s.sw.Heartbeat)
		defer ticker.Stop()
		beat = ticker.C
	}
	for !out.failed {
		r.mu.Lock()
		events, kinds, ended, changed := r.events, r.kinds, r.status.ended(), r.changed
		r.mu.Unlock()
		for ; from < len(events) && !out.failed; from++ {
			if !out.writeEvent(kinds[from], events[from], from, obfuscate) {
				return
			}
		}
		out.flush()
		if ended {
			return
		}
		select {
		case <-changed:
		case <-beat:
			out.write([]byte(": keep-alive\n\n"))
			out.flush()
		case <-req.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// writeEvent writes one frame, unless a fault strikes. It reports whether the stream goes on.
func (o *streamWriter) writeEvent(kind string, event []byte, seq int, obfuscate bool) bool {
	fault := o.sim.faults.fire(EndpointResponseStream, FaultStreamCut, FaultStreamError)
	if fault == FaultStreamError {
		kind = "error"
		event = appendIntField([]byte(`{"type":"error"`), "sequence_number", int64(seq))
		event = append(event, `,"code":"server_error","message":"The stream failed.","param":null}`...)
		obfuscate = false
	}
	b := append(append(o.frame[:0], "event: "...), kind...)
	b = append(b, "\ndata: "...)
	event = dataLines(event)
	if obfuscate && strings.HasSuffix(kind, ".delta") {
		b = append(b, event[:len(event)-1]...)
		b = append(append(b, `,"obfuscation":"`...), padding[:rand.IntN(len(padding))]...)
		b = append(b, `"}`...)
	} else {
		b = append(b, event...)
	}
	o.frame = append(b, "\n\n"...)
	if fault == FaultStreamCut {
		o.write(o.frame[:len(o.frame)/2])
		o.flush()
		panic(http.ErrAbortHandler) // The server closes the connection without ending the body.
	}
	o.write(o.frame)
	if fault == FaultStreamError {
		o.flush()
		return false
	}
	return true
}
