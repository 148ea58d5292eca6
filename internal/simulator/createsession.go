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
	s.sim.changed()
	return body
}

// admit starts the turn of the initial input. Without input the session is idle from the start.
func (s *session) admit(input *userInput) {
	if input == nil {
		s.emitSession("agent.session.idle")
		return
	}
	s.initial = input
	s.admitInitial()
}

func (s *session) admitInitial() {
	s.later(s.sim.cfg.AdmissionDelay, func() {
		input := *s.initial
		s.initial = nil
		s.startTurn(input)
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
