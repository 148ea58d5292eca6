package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/callfan/callfan/internal/runs"
)

// Runs is what the admin API does with runs of the Responses API. Its methods may return
// ErrNotStarted, and runs.ErrNotFound for an unknown run.
type Runs interface {
	// StartRun records a run; see runs.Engine.Start for the key and the errors.
	StartRun(ctx context.Context, request json.RawMessage, key string) (runs.Run, error)
	// ShowRun gives a run.
	ShowRun(ctx context.Context, id string) (runs.Run, error)
	// CancelRun asks to end a run.
	CancelRun(ctx context.Context, id string) (runs.Run, error)
	// FollowRun calls each for the notices about a run that are still kept, from the one
	// after the number on, and for those that come, until ctx ends or each returns false.
	FollowRun(ctx context.Context, id string, after uint64, each func(number uint64, notice json.RawMessage) bool) error
}

const (
	// maxRunBody leaves room in the 5 MiB that NATS should take.
	maxRunBody = 4 << 20
	// keyHeader makes starting a run repeatable.
	keyHeader = "Idempotency-Key"
	maxKey    = 256
	// quiet is how long a stream of notices may be without one before it shows a sign of life.
	quiet = 15 * time.Second
)

func (s *Server) startRun(w http.ResponseWriter, r *http.Request) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "send JSON, with Content-Type: application/json")
		return
	}
	key := r.Header.Get(keyHeader)
	if len(key) > maxKey {
		refuse(w, http.StatusBadRequest, "invalid_key", fmt.Sprintf("the %s has %d bytes; want at most %d", keyHeader, len(key), maxKey))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRunBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body has more than %d bytes", maxRunBody))
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_body", "the body did not arrive")
		return
	}
	run, err := s.cfg.Admin.StartRun(r.Context(), body, key)
	if err != nil {
		s.failRun(w, r, err)
		return
	}
	w.Header().Set("Location", "/v1/runs/"+run.ID)
	write(w, http.StatusCreated, run)
}

func (s *Server) showRun(w http.ResponseWriter, r *http.Request) {
	run, err := s.cfg.Admin.ShowRun(r.Context(), r.PathValue("id"))
	if err != nil {
		s.failRun(w, r, err)
		return
	}
	write(w, http.StatusOK, run)
}

func (s *Server) cancelRun(w http.ResponseWriter, r *http.Request) {
	run, err := s.cfg.Admin.CancelRun(r.Context(), r.PathValue("id"))
	if err != nil {
		s.failRun(w, r, err)
		return
	}
	write(w, http.StatusAccepted, run)
}

func (s *Server) failRun(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, runs.ErrInvalidRequest):
		refuse(w, http.StatusBadRequest, "invalid_run", err.Error())
	case errors.Is(err, runs.ErrTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", err.Error())
	case errors.Is(err, runs.ErrConflict):
		refuse(w, http.StatusConflict, "conflict", err.Error())
	case errors.Is(err, runs.ErrNotFound):
		refuse(w, http.StatusNotFound, "unknown_run", "there is no such run, or no longer")
	default:
		s.fail(w, r, err)
	}
}

// followRun serves the notices about a run as server-sent events, until it ends. A client
// goes on after the last event that it has by Last-Event-ID, as browsers do.
func (s *Server) followRun(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	run, err := s.cfg.Admin.ShowRun(r.Context(), id)
	if err != nil {
		s.failRun(w, r, err)
		return
	}
	after := uint64(0)
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if after, err = strconv.ParseUint(last, 10, 64); err != nil {
			refuse(w, http.StatusBadRequest, "invalid_event", "Last-Event-ID is the id of an event of this stream")
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	events := eventStream{w: w, control: http.NewResponseController(w)}
	if run.Status.Final() {
		events.rest(r.Context(), s.cfg.Admin, run, after)
		return
	}
	events.follow(r.Context(), s.cfg.Admin, id, after)
}

// eventStream writes server-sent events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// send writes one event or comment; false when nobody reads any more.
func (e eventStream) send(format string, args ...any) bool {
	_ = e.control.SetWriteDeadline(time.Now().Add(quiet))
	if _, err := fmt.Fprintf(e.w, format+"\n\n", args...); err != nil {
		return false
	}
	return e.control.Flush() == nil
}

// numbered is a notice on its way.
type numbered struct {
	number uint64
	notice json.RawMessage
	kind   string
}

// follow sends notices as they come. A run whose last notice was lost is seen to have ended
// when the stream has been quiet.
func (e eventStream) follow(ctx context.Context, admin Runs, id string, after uint64) {
	ctx, stop := context.WithCancel(ctx)
	notices, done := make(chan numbered), make(chan struct{})
	defer func() { stop(); <-done }()
	go func() {
		defer close(done)
		defer close(notices)
		_ = admin.FollowRun(ctx, id, after, func(number uint64, notice json.RawMessage) bool {
			var n struct{ Type string }
			_ = json.Unmarshal(notice, &n)
			select {
			case notices <- numbered{number, notice, n.Type}:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	if !e.send(": following %s", id) {
		return
	}
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		select {
		case n, ok := <-notices:
			if !ok || !e.send("id: %d\nevent: %s\ndata: %s", n.number, n.kind, n.notice) || n.kind == runs.NoticeEnded {
				return
			}
			tick.Reset(quiet)
		case <-tick.C:
			run, err := admin.ShowRun(ctx, id)
			if err == nil && run.Status.Final() {
				e.ended(run)
				return
			}
			if !e.send(": waiting") {
				return
			}
		}
	}
}

// rest sends what is kept about a run that is over, and its end in any case.
func (e eventStream) rest(ctx context.Context, admin Runs, run runs.Run, after uint64) {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	ended := false
	_ = admin.FollowRun(ctx, run.ID, after, func(number uint64, notice json.RawMessage) bool {
		var n struct{ Type string }
		_ = json.Unmarshal(notice, &n)
		ended = n.Type == runs.NoticeEnded
		return e.send("id: %d\nevent: %s\ndata: %s", number, n.Type, notice) && !ended
	})
	if !ended {
		e.ended(run)
	}
}

// ended makes the last event from the run itself.
func (e eventStream) ended(run runs.Run) {
	notice, err := json.Marshal(run.EndNotice())
	if err == nil {
		e.send("event: %s\ndata: %s", runs.NoticeEnded, notice)
	}
}
