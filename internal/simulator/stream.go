package simulator

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// streamWriteTimeout bounds one write to a reader that does not read.
const streamWriteTimeout = 30 * time.Second

// stream is one server-sent event connection. Events are queued by the session without waiting and written by the
// connection's own goroutine.
type stream struct {
	// untilIdle streams belong to a creation and end with the first idle.
	untilIdle bool
	obfuscate bool
	limit     int

	mu       sync.Mutex
	queue    [][]byte
	ended    bool // no more events; the queue is still written
	overflow bool // the reader was too slow
	wake     chan struct{}
}

func newStream(limit int, untilIdle, obfuscate bool) *stream {
	return &stream{untilIdle: untilIdle, obfuscate: obfuscate, limit: limit, wake: make(chan struct{}, 1)}
}

func (st *stream) push(event []byte) {
	st.mu.Lock()
	switch {
	case st.ended:
	case len(st.queue) >= st.limit:
		st.ended, st.overflow = true, true
		st.queue = nil
	default:
		st.queue = append(st.queue, event)
	}
	st.mu.Unlock()
	st.signal()
}

// end lets the stream end after what is queued.
func (st *stream) end() {
	st.mu.Lock()
	st.ended = true
	st.mu.Unlock()
	st.signal()
}

func (st *stream) signal() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

func (st *stream) take() (events [][]byte, ended, overflow bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	events = st.queue
	st.queue = nil
	return events, st.ended, st.overflow
}

// attach adds the stream to the session; with a snapshot it first catches up with the current turn. s.mu must be held.
func (s *session) attach(st *stream, snapshot bool) {
	if s.streams == nil {
		s.streams = make(map[*stream]struct{})
	}
	if t := s.current(); snapshot && t != nil {
		if s.sim.sw.SnapshotOnSubscribe {
			for _, it := range s.items[t.firstItem:] {
				if it.turn == t {
					st.push(s.itemEvent("agent.session.turn.item.added", it))
				}
			}
		}
		if s.status == statusRequiresAction && s.sim.sw.RequiresActionOnSubscribe {
			st.push(s.sessionEvent("agent.session.requires_action"))
		}
	}
	s.streams[st] = struct{}{}
	s.sim.stats.streams.Add(1)
}

func (s *session) detach(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
}

// streamEvents is GET …/events: live only, no replay, no event ids.
func (s *Simulator) streamEvents(w http.ResponseWriter, r *http.Request, ses *session) error {
	obfuscate := s.sw.Obfuscation && r.URL.Query().Get("include_obfuscation") != "false"
	st := newStream(s.sw.StreamQueueFrames, false, obfuscate)
	ses.mu.Lock()
	if ses.gone.Load() {
		ses.mu.Unlock()
		return notFound("Session", ses.id)
	}
	ses.attach(st, true)
	ses.mu.Unlock()
	s.serveStream(w, r, ses, st, http.StatusOK)
	return nil
}

// serveStream writes the stream until it ends, the client leaves, or the simulator closes.
func (s *Simulator) serveStream(w http.ResponseWriter, r *http.Request, ses *session, st *stream, status int) {
	defer ses.detach(st)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	out := streamWriter{w: w, rc: http.NewResponseController(w), sim: s, stream: st, sessionID: ses.id}
	out.flush()

	var beat <-chan time.Time
	if s.sw.Heartbeat > 0 {
		ticker := time.NewTicker(s.sw.Heartbeat)
		defer ticker.Stop()
		beat = ticker.C
	}
	for !out.failed {
		select {
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		case <-beat:
			out.write([]byte(": keep-alive\n\n"))
			out.flush()
		case <-st.wake:
			if !out.writeQueued() {
				return
			}
		}
	}
}

// streamWriter frames events on one connection.
type streamWriter struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	sim       *Simulator
	stream    *stream
	sessionID string
	frame     []byte
	failed    bool
}

// writeQueued writes all queued events with one flush and reports whether the stream goes on.
func (o *streamWriter) writeQueued() bool {
	events, ended, overflow := o.stream.take()
	for _, event := range events {
		switch o.sim.faults.fire(EndpointStream, FaultStreamCut, FaultStreamError) {
		case FaultStreamCut:
			o.build(event)
			o.write(o.frame[:len(o.frame)/2])
			o.flush()
			panic(http.ErrAbortHandler) // The server closes the connection without ending the body.
		case FaultStreamError:
			o.build(errorEvent(o.sessionID, "internal_error", "The stream failed."))
			o.write(o.frame)
			o.flush()
			return false
		}
		o.build(event)
		o.write(o.frame)
	}
	if overflow && o.sim.sw.SlowReaderError {
		o.build(errorEvent(o.sessionID, "stream_interrupted", "The reader is too slow."))
		o.write(o.frame)
	}
	if ended && o.sim.sw.SendDone {
		o.write([]byte("data: [DONE]\n\n"))
	}
	o.flush()
	return !ended && !o.failed
}

const padding = "xK3vQ9mZ7tR1pW5nY8cB2dF6gH4jL0s"

// dataLines makes each line of an event's JSON a data line of its own: scripted arguments and schemas may hold line breaks.
func dataLines(event []byte) []byte {
	if !bytes.ContainsAny(event, "\r\n") {
		return event
	}
	event = bytes.ReplaceAll(event, []byte("\r\n"), []byte("\n"))
	event = bytes.ReplaceAll(event, []byte("\r"), []byte("\n"))
	return bytes.ReplaceAll(event, []byte("\n"), []byte("\ndata: "))
}

// build frames an event, padded if asked.
func (o *streamWriter) build(event []byte) {
	b := append(o.frame[:0], "data: "...)
	event = dataLines(event)
	if o.stream.obfuscate {
		b = append(b, event[:len(event)-1]...)
		b = append(b, `,"obfuscation":"`...)
		b = append(b, padding[:rand.IntN(len(padding))]...)
		b = append(b, `"}`...)
	} else {
		b = append(b, event...)
	}
	o.frame = append(b, "\n\n"...)
}

func (o *streamWriter) write(p []byte) {
	if o.failed {
		return
	}
	// Not every ResponseWriter has deadlines; then the server's own timeouts apply.
	_ = o.rc.SetWriteDeadline(time.Now().Add(streamWriteTimeout))
	if _, err := o.w.Write(p); err != nil {
		o.failed = true
	}
}

func (o *streamWriter) flush() {
	if err := o.rc.Flush(); err != nil {
		o.failed = true
	}
}
