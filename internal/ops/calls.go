package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Call is a call as the admin API shows it. Arguments and outputs are not shown.
type Call struct {
	call.Key
	Function string     `json:"function"`
	State    call.State `json:"state"`
	// Attempt and Handover are those of the latest publication.
	Attempt  int       `json:"attempt"`
	Handover int       `json:"handover"`
	Claimed  time.Time `json:"claimed_at"`
	// AgeMS is the time since the claim, SinceMS that since the last change, in
	// milliseconds.
	AgeMS   int64 `json:"age_ms"`
	SinceMS int64 `json:"since_ms"`
	// Outcome is the message id of the saved outcome, Reason who decided the result
	// and why. Empty before there is one.
	Outcome string `json:"outcome,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Explanation says in one sentence why the call is where it is.
	Explanation string `json:"explanation"`
	// History are the call's steps, the oldest first. Lists leave it out.
	History []Step `json:"history,omitempty"`
}

// Step is one step in a call's life: the state, attempt and hand-over that it left,
// and what was noted about it.
type Step struct {
	At       time.Time  `json:"at"`
	State    call.State `json:"state"`
	Attempt  int        `json:"attempt"`
	Handover int        `json:"handover"`
	Note     string     `json:"note,omitempty"`
}

// CallList is the answer of GET /v1/calls.
type CallList struct {
	Calls []Call `json:"calls"`
	// More says that there are more calls than the limit let through.
	More bool `json:"more,omitempty"`
}

// DefaultCalls is how many calls of the whole installation a list has unless told
// otherwise, and MaxCalls how many at most.
const (
	DefaultCalls = 100
	MaxCalls     = 1000
)

// walkTimeout bounds a list over the whole installation; it leaves time to answer.
const walkTimeout = 25 * time.Second

// OpenCalls is the name that stands for all open states in a query.
const OpenCalls = "open"

// States are the states that a query by this name is about; an error that lists the
// names when there is no such query.
func States(name string) ([]call.State, error) {
	var of []call.State
	var names []string
	for _, s := range call.States() {
		if s.Open() && name == OpenCalls || s == call.State(name) && (s.Open() || s.Saved()) {
			of = append(of, s)
		}
		if s.Open() || s.Saved() {
			names = append(names, string(s))
		}
	}
	if of == nil {
		return nil, fmt.Errorf("state is %q; use %s, or one of %s: calls that have ended are listed by their session only",
			name, OpenCalls, strings.Join(names, ", "))
	}
	return of, nil
}

// listCalls answers for one session, ?session=ID, or for the calls of all sessions in
// a state, ?state=STATE&limit=N.
func (s *Server) listCalls(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Has("state") {
		s.listByState(w, r, query)
		return
	}
	session := query.Get("session")
	if err := checkID(session); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_id", err.Error()+"; give ?session=ID, or ?state=STATE for those of all sessions")
		return
	}
	calls, err := s.cfg.Admin.Calls(r.Context(), session)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	write(w, http.StatusOK, CallList{Calls: append([]Call{}, calls...)})
}

func (s *Server) listByState(w http.ResponseWriter, r *http.Request, query url.Values) {
	if query.Has("session") {
		refuse(w, http.StatusBadRequest, "invalid_query", "give session or state, not both; the list of a session shows the state of each call")
		return
	}
	states, err := States(query.Get("state"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_state", err.Error())
		return
	}
	limit, ok := limitOf(w, query, DefaultCalls, MaxCalls)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), walkTimeout)
	defer cancel()
	list, err := s.cfg.Admin.CallsIn(ctx, states, limit)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the calls of the whole installation could not be read in %v; list those of one session: %w", walkTimeout, err)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list.Calls = append([]Call{}, list.Calls...)
	write(w, http.StatusOK, list)
}

// limitOf reads ?limit=N, or answers with what is wrong.
func limitOf(w http.ResponseWriter, query url.Values, usual, most int) (int, bool) {
	text := query.Get("limit")
	if text == "" {
		return usual, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		refuse(w, http.StatusBadRequest, "invalid_limit", fmt.Sprintf("limit is %q; use 1 to %d", text, most))
		return 0, false
	}
	return n, true
}

// keyOf is the call that a path /v1/calls/SESSION/TURN/CALL names.
func keyOf(r *http.Request) call.Key {
	return call.Key{Session: r.PathValue("session"), Turn: r.PathValue("turn"), Call: r.PathValue("call")}
}

// showCall answers for one call.
func (s *Server) showCall(w http.ResponseWriter, r *http.Request) {
	c, err := s.cfg.Admin.Call(r.Context(), keyOf(r))
	switch {
	case err != nil:
		s.fail(w, r, err)
	case c.State == call.Absent:
		refuse(w, http.StatusNotFound, "unknown_call", c.Explain())
	default:
		write(w, http.StatusOK, c)
	}
}
