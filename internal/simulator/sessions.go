package simulator

import (
	"encoding/json"
	"net/http"
	"time"
)

// setOptions sets what creation and update share. s.mu must be held unless the session is not yet shared.
func (s *session) setOptions(cache json.RawMessage, review *string, spend *spendControl) error {
	if cache != nil {
		var options struct {
			TTL string `json:"ttl"`
		}
		switch {
		case isNull(cache):
			s.promptCache = nil
		case json.Unmarshal(cache, &options) != nil || options.TTL != "" && options.TTL != "30m" && options.TTL != "12h":
			return invalidRequest("prompt_cache_options.ttl must be 30m or 12h.")
		default:
			s.promptCache = cache
		}
	}
	if review != nil {
		if *review != "none" && *review != "auto_review" {
			return invalidRequest("review must be none or auto_review.")
		}
		s.review = *review
	}
	if spend != nil {
		if spend.Limit != nil && *spend.Limit <= 0 {
			return invalidRequest("spend_control.limit must be positive.")
		}
		s.spendLimit = spend.Limit
	}
	return nil
}

func (s *Simulator) getSession(w http.ResponseWriter, _ *http.Request, ses *session) error {
	return locked(w, ses, func() ([]byte, error) { return ses.append(make([]byte, 0, 2048)), nil })
}

type updateRequest struct {
	Agent       *agentFields    `json:"agent"`
	Metadata    json.RawMessage `json:"metadata"`
	PromptCache json.RawMessage `json:"prompt_cache_options"`
	Review      *string         `json:"review"`
	Spend       *spendControl   `json:"spend_control"`
}

func (s *Simulator) updateSession(w http.ResponseWriter, r *http.Request, ses *session) error {
	var req updateRequest
	if err := s.decodeBody(w, r, &req); err != nil {
		return err
	}
	if (req.Agent == nil || req.Agent.empty()) && req.Metadata == nil && req.PromptCache == nil && req.Review == nil &&
		req.Spend == nil {
		return invalidRequest("At least one update field is required.")
	}
	var metadata map[string]string
	if req.Metadata != nil {
		var err error
		if metadata, err = parseMetadata(req.Metadata); err != nil {
			return err
		}
	}
	return locked(w, ses, func() ([]byte, error) {
		config := ses.agent
		if req.Agent != nil {
			var err error
			if config, err = config.apply(req.Agent); err != nil {
				return nil, err
			}
		}
		if err := ses.setOptions(req.PromptCache, req.Review, req.Spend); err != nil {
			return nil, err
		}
		if req.Agent != nil {
			ses.setAgent(config)
		}
		if req.Metadata != nil {
			ses.metadata, ses.metadataSince = metadata, time.Now()
		}
		return ses.append(nil), nil
	})
}

// listSessions is GET /agents/sessions. There is no filter by status.
func (s *Simulator) listSessions(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	page, err := s.parsePage(query)
	if err != nil {
		return err
	}
	var after *session
	if page.after != "" {
		var ok bool
		if after, ok = s.sessions.get(page.after); !ok {
			return invalidRequest("The cursor %q is not in this list.", page.after)
		}
	}
	filter, agentID := metadataFilter(query), query.Get("agent_id")
	type entry struct {
		id   string
		body []byte
	}
	var found []entry
	more := false
	for ses := range s.sessions.walk(after, page.desc) {
		ses.mu.Lock()
		matches := agentID == "" || ses.agent.id == agentID
		if len(filter) > 0 {
			matches = matches && time.Since(ses.metadataSince) >= s.sw.MetadataFilterLag && matchesAll(ses.metadata, filter)
		}
		if matches {
			if more = len(found) == page.limit; !more {
				found = append(found, entry{ses.id, ses.append(nil)})
			}
		}
		ses.mu.Unlock()
		if more {
			break
		}
	}
	writeJSON(w, http.StatusOK, renderList(found, more,
		func(e entry) string { return e.id },
		func(e entry, b []byte) []byte { return append(b, e.body...) }))
	return nil
}

// deleteSession is DELETE /agents/sessions/{id}; repeating it is answered like the first.
func (s *Simulator) deleteSession(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("session")
	ses, ok := s.sessions.get(id)
	switch {
	case !ok && !s.sessions.wasDeleted(id):
		return notFound("Session", id)
	case ok && !ses.pinned:
		if err := ses.discard(); err != nil {
			return err
		}
		s.sessions.remove(ses)
	}
	b := appendString(append([]byte(nil), `{"id":`...), id)
	writeJSON(w, http.StatusOK, append(b, `,"object":"agent.session.deleted","deleted":true}`...))
	return nil
}

// discard ends the session, unless it is busy or waits.
func (s *session) discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deletable() {
		return conflict("session must be durably idle or failed without required actions before deletion")
	}
	s.gone.Store(true)
	for st := range s.streams {
		st.end()
	}
	for _, c := range s.calls { // async calls nobody answered
		if c.waits() {
			s.sim.stats.pending.Add(-1)
		}
	}
	return nil
}
