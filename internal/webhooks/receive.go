package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"
)

// The types of events that lead to something.
const (
	ActionRequired     = "agent.session.action_required"
	ResponseCompleted  = "response.completed"
	ResponseFailed     = "response.failed"
	ResponseIncomplete = "response.incomplete"
	ResponseCancelled  = "response.cancelled"
	Other              = "other"      // stands for all other types
	Unverified         = "unverified" // stands for the type where nothing in the webhook can be believed
)

// Types are the types that Config.Count is told.
var Types = []string{
	ActionRequired, ResponseCompleted, ResponseFailed, ResponseIncomplete, ResponseCancelled, Other, Unverified,
}

// The results of webhooks.
const (
	// Accepted: whoever it concerns was told.
	Accepted = "accepted"
	// Elsewhere: the session is not served by this replica.
	Elsewhere = "elsewhere"
	// Repeated: it was received before.
	Repeated = "repeated"
	// Ignored: callfan has no use for it.
	Ignored = "ignored"
	// Refused: the signature is wrong, or it is no webhook.
	Refused = "refused"
	// Failed: it could not be handled, and has to come again.
	Failed = "failed"
)

// Results are all of them.
var Results = []string{Accepted, Elsewhere, Repeated, Ignored, Refused, Failed}

// event is a webhook's body, as far as callfan reads it.
type event struct {
	Type string `json:"type"`
	Data struct {
		ID string `json:"id"`
	} `json:"data"`
}

// receive answers one webhook. Any answer but a 2xx makes it come again.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.cfg.Count(Unverified, Refused)
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, http.StatusText(status), status)
		return
	}
	if err := s.verifier.VerifySignature(body, r.Header); err != nil {
		s.cfg.Count(Unverified, Refused)
		s.warn(r.Context(), err)
		http.Error(w, "the signature is not right", http.StatusBadRequest)
		return
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil || e.Type == "" {
		s.cfg.Count(Other, Refused)
		http.Error(w, "not an event", http.StatusBadRequest)
		return
	}
	result := s.once(r.Context(), r.Header.Get("webhook-id"), e)
	s.cfg.Count(e.label(), result)
	s.cfg.Logger.DebugContext(r.Context(), "webhook received", "type", e.label(), "id", e.Data.ID,
		"webhook_id", r.Header.Get("webhook-id"), "result", result)
	if result == Failed {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// once handles a webhook that was not handled before.
func (s *Server) once(ctx context.Context, id string, e event) (result string) {
	switch s.seen.begin(id) {
	case handled:
		return Repeated
	case underWay: // if that fails, this one must not have been taken
		return Failed
	}
	defer func() { s.seen.end(id, result != Failed) }()
	return s.handle(ctx, e)
}

func (s *Server) handle(ctx context.Context, e event) (result string) {
	if e.Data.ID == "" {
		return Ignored
	}
	switch e.Type {
	case ActionRequired:
		if !s.cfg.ActionRequired(e.Data.ID) {
			return Elsewhere
		}
		return Accepted
	case ResponseCompleted, ResponseFailed, ResponseIncomplete, ResponseCancelled:
		if s.cfg.Finished == nil {
			return Ignored
		}
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
		if err := s.cfg.Finished(ctx, e.Data.ID); err != nil {
			s.cfg.Logger.WarnContext(ctx, "a webhook could not be handled; it will come again", "type", e.Type,
				"response_id", e.Data.ID, "error", err)
			return Failed
		}
		return Accepted
	default:
		return Ignored
	}
}

// label is the type where it is one of those that count.
func (e event) label() string {
	if slices.Contains(Types, e.Type) {
		return e.Type
	}
	return Other
}

// warn logs a signature that was refused, at most once a minute: strangers can send any
// number of them, and a wrong secret has to be seen.
func (s *Server) warn(ctx context.Context, err error) {
	now, last := time.Now().Unix(), s.warned.Load()
	if now-last < 60 || !s.warned.CompareAndSwap(last, now) {
		return
	}
	s.cfg.Logger.WarnContext(ctx, "a webhook was refused; if OpenAI sent it, the signing secret or the clock is wrong", "error", err)
}
