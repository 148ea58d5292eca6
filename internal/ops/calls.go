package ops

import (
	"fmt"
	"net/http"
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
}

// CallList is the answer of GET /v1/calls.
type CallList struct {
	Calls []Call `json:"calls"`
}

// Explain says in one sentence why a call is in its state.
func (c Call) Explain() string {
	since := (time.Duration(c.SinceMS) * time.Millisecond).Round(time.Second)
	switch c.State {
	case call.Absent:
		return "The dispatchers have no record of it: it was never claimed, or its markers were forgotten after the retention."
	case call.Seen:
		return fmt.Sprintf("It was claimed and handed over %s ago as attempt %d; no outcome has arrived.", since, max(c.Attempt, 1))
	case call.Held:
		return fmt.Sprintf("No executor has registered %s; the call has waited for one for %s.", c.Function, since)
	case call.Queued:
		return fmt.Sprintf("It has been in the queue or with an executor for %s as attempt %d; no outcome has arrived.", since, max(c.Attempt, 1))
	case call.Retrying:
		return fmt.Sprintf("Attempt %d failed for a technical reason %s ago; the next one waits for its time.", max(c.Attempt, 1), since)
	case call.Succeeded, call.Failed:
		return fmt.Sprintf("Its result (%s, %s) was saved %s ago and is not yet accepted by the API.", c.State, c.Reason, since)
	case call.Submitted:
		return fmt.Sprintf("The API accepted its result %s ago; the session still lists the call.", since)
	case call.Settled:
		return fmt.Sprintf("It was answered; the session stopped listing it %s ago.", since)
	case call.Cancelled:
		return fmt.Sprintf("The session stopped listing it %s ago before a result was accepted: its turn or session ended.", since)
	case call.Obsolete:
		return "The API has another result for it, or refused this one for good."
	}
	return "Its state is unknown to this version."
}

// listCalls answers for one session: ?session=ID.
func (s *Server) listCalls(w http.ResponseWriter, r *http.Request) {
	session := r.URL.Query().Get("session")
	if err := checkID(session); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_id", err.Error()+"; give ?session=ID")
		return
	}
	calls, err := s.cfg.Admin.Calls(r.Context(), session)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	write(w, http.StatusOK, CallList{Calls: append([]Call{}, calls...)})
}

// showCall answers for one call: /v1/calls/SESSION/TURN/CALL.
func (s *Server) showCall(w http.ResponseWriter, r *http.Request) {
	key := call.Key{Session: r.PathValue("session"), Turn: r.PathValue("turn"), Call: r.PathValue("call")}
	c, err := s.cfg.Admin.Call(r.Context(), key)
	switch {
	case err != nil:
		s.fail(w, r, err)
	case c.State == call.Absent:
		refuse(w, http.StatusNotFound, "unknown_call", c.Explain())
	default:
		write(w, http.StatusOK, c)
	}
}
