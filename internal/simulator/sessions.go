package simulator

import (
	"encoding/json"
	"net/http"
	"time"
)

type createRequest struct {
	Agent       *agentFields      `json:"agent"`
	AgentID     *string           `json:"agent_id"`
	Environment json.RawMessage   `json:"environment"`
	Input       json.RawMessage   `json:"input"`
	Metadata    json.RawMessage   `json:"metadata"`
	VaultIDs    []string          `json:"vault_ids"`
	PromptCache json.RawMessage   `json:"prompt_cache_options"`
	Review      *string           `json:"review"`
	Spend       *spendControl     `json:"spend_control"`
	Stream      *bool             `json:"stream"`
	Options     *createStreamOpts `json:"stream_options"`
}

type spendControl struct {
	Limit *int64 `json:"limit"`
}

type createStreamOpts struct {
	IncludeObfuscation *bool `json:"include_obfuscation"`
}

// createSession is POST /agents/sessions. It is not idempotent: two equal creations make two sessions.
func (s *Simulator) createSession(w http.ResponseWriter, r *http.Request) error {
	var req createRequest
	if err := s.decodeBody(w, r, &req); err != nil {
		return err
	}
	ses, input, err := s.newSession(&req)
	if err != nil {
		return err
	}
	streaming := req.Stream != nil && *req.Stream
	var st *stream
	if streaming {
		obfuscate := s.sw.Obfuscation &&
			(req.Options == nil || req.Options.IncludeObfuscation == nil || *req.Options.IncludeObfuscation)
		st = newStream(s.sw.StreamQueueFrames, true, obfuscate)
	}

	body := ses.open(st, input)
	if streaming {
		s.serveStream(w, r, ses, st, s.sw.CreateStatus)
		return nil
	}
	writeJSON(w, s.sw.CreateStatus, body)
	return nil
}

// open makes the session known, starts its turn and returns it as it was before that. The stream may be nil.
func (s *session) open(st *stream, input *userInput) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sim.sessions.add(s)
	s.sim.stats.sessions.Add(1)
	body := s.append(nil)
	if st != nil {
		s.attach(st, false)
		s.emitSession("agent.session.created")
	}
	s.sim.hooks.notify(s, "agent.session.created")
	s.admit(input)
	return body
}

// admit starts the turn of the initial input. Without input the session is idle from the start.
func (s *session) admit(input *userInput) {
	if input == nil {
		s.emitSession("agent.session.idle")
		return
	}
	s.initialPending = true
	s.later(s.sim.cfg.AdmissionDelay, func() {
		s.initialPending = false
		s.startTurn(*input)
	})
}

// newSession checks the request and builds the session; input is nil when there is none.
func (s *Simulator) newSession(req *createRequest) (ses *session, input *userInput, err error) {
	config := newAgentConfig(newID("agent_"))
	if req.AgentID != nil {
		stored, ok := s.agents.get(*req.AgentID)
		if !ok {
			return nil, nil, notFound("Agent", *req.AgentID)
		}
		config = stored.config
	}
	if req.Agent != nil {
		if config, err = config.apply(req.Agent); err != nil {
			return nil, nil, err
		}
	}
	if config.model == "" {
		return nil, nil, invalidRequest("agent.model is required when agent_id is omitted")
	}
	kind, err := environmentType(req.Environment)
	if err != nil {
		return nil, nil, err
	}
	streaming := req.Stream != nil && *req.Stream
	switch {
	case !isNull(req.Input):
		parsed, err := s.parseInput(req.Input)
		if err != nil {
			return nil, nil, err
		}
		if parsed.plan, err = planFor(parsed.text, config.tools); err != nil {
			return nil, nil, err
		}
		input = &parsed
	case kind == "none", streaming && kind != "self_hosted":
		return nil, nil, invalidRequest("input is required for this environment.")
	}
	if req.Options != nil && !streaming && !s.cfg.Fixtures { // openai-go's own test of creation sends just that.
		return nil, nil, invalidRequest("stream_options is only allowed when stream is true.")
	}
	now := time.Now()
	ses = &session{
		sim: s, id: newID("sess_"), createdAt: now.Unix(), lastActive: now.Unix(), status: statusIdle,
		environment: req.Environment, vaults: req.VaultIDs, metadataSince: now,
	}
	if input != nil {
		ses.status = statusInProgress
	}
	ses.setAgent(config)
	if ses.metadata, err = parseMetadata(req.Metadata); err != nil {
		return nil, nil, err
	}
	if err := ses.setOptions(req.PromptCache, req.Review, req.Spend); err != nil {
		return nil, nil, err
	}
	return ses, input, nil
}

func environmentType(raw json.RawMessage) (string, error) {
	if isNull(raw) {
		return "", invalidRequest("environment is required.")
	}
	var env struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &env); err != nil || env.Type == "" {
		return "", invalidRequest("environment.type is required.")
	}
	return env.Type, nil
}

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
		if c.state == callPending || c.state == callAccepted {
			s.sim.stats.pending.Add(-1)
		}
	}
	return nil
}
