package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

const (
	maxBody = 1 << 20
	maxIDs  = 1000
	maxID   = 256
)

// SessionList is the answer of GET /v1/sessions.
type SessionList struct {
	Sessions []Session `json:"sessions"`
}

// FunctionList is the answer of GET /v1/functions.
type FunctionList struct {
	Functions []Function `json:"functions"`
}

// Attachment is the request and the answer of POST /v1/sessions.
type Attachment struct {
	IDs []string `json:"ids"`
}

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) {
	sessions, err := s.cfg.Admin.Sessions(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	write(w, http.StatusOK, SessionList{Sessions: append([]Session{}, sessions...)})
}

func (s *Server) attachSessions(w http.ResponseWriter, r *http.Request) {
	var body Attachment
	if !read(w, r, &body, maxBody, `{"ids":["sess_1"]}`) {
		return
	}
	if n := len(body.IDs); n == 0 || n > maxIDs {
		refuse(w, http.StatusBadRequest, "invalid_ids", fmt.Sprintf("ids has %d elements; give 1 to %d", n, maxIDs))
		return
	}
	for _, id := range body.IDs {
		if err := checkID(id); err != nil {
			refuse(w, http.StatusBadRequest, "invalid_id", err.Error())
			return
		}
	}
	if err := s.cfg.Admin.Attach(r.Context(), body.IDs...); err != nil {
		s.fail(w, r, err)
		return
	}
	write(w, http.StatusOK, body)
}

func (s *Server) detachSession(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := checkID(id); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_id", err.Error())
		return
	}
	if err := s.cfg.Admin.Detach(r.Context(), id); err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// checkID keeps out what is certainly no session id, and would be trouble in logs
// and in paths.
func checkID(id string) error {
	if id == "" || len(id) > maxID {
		return fmt.Errorf("a session id has %d bytes; want 1 to %d", len(id), maxID)
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '/' || c == '?' || c == '#' || c == '%' {
			return fmt.Errorf("session id %q: byte %d does not belong there", id, i+1)
		}
	}
	return nil
}

// read decodes a JSON body of known members and at most limit bytes, or answers with
// what is wrong and with an example.
func read(w http.ResponseWriter, r *http.Request, into any, limit int64, example string) bool {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "send JSON, with Content-Type: application/json")
		return false
	}
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		if _, more := body.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body has more than %d bytes", limit))
		return false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_body", fmt.Sprintf("want a body like %s: %v", example, err))
		return false
	}
	return true
}

// fail answers with an error of the parts behind, and logs it.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrNotStarted) {
		refuse(w, http.StatusServiceUnavailable, "not_started", err.Error())
		return
	}
	s.cfg.Logger.WarnContext(r.Context(), "an admin request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	refuse(w, http.StatusServiceUnavailable, "unavailable", err.Error())
}
