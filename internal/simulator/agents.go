package simulator

import (
	"encoding/json"
	"net/http"
	"sync"
)

// storedAgent is a reusable agent (POST /agents).
type storedAgent struct {
	config             agentConfig
	metadata           map[string]string
	createdAt, updated int64
}

type agentStore struct {
	mu    sync.RWMutex
	byID  map[string]*storedAgent
	order []string
}

func (a *agentStore) get(id string) (storedAgent, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if found, ok := a.byID[id]; ok {
		return *found, true
	}
	return storedAgent{}, false
}

func (a *agentStore) put(agent storedAgent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID == nil {
		a.byID = make(map[string]*storedAgent)
	}
	if _, known := a.byID[agent.config.id]; !known {
		a.order = append(a.order, agent.config.id)
	}
	a.byID[agent.config.id] = &agent
}

func (a *agentStore) remove(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.byID[id]; !known {
		return false
	}
	delete(a.byID, id)
	for i, other := range a.order {
		if other == id {
			a.order = append(a.order[:i:i], a.order[i+1:]...)
			break
		}
	}
	return true
}

func (a *agentStore) all() []storedAgent {
	a.mu.RLock()
	defer a.mu.RUnlock()
	agents := make([]storedAgent, 0, len(a.order))
	for _, id := range a.order {
		agents = append(agents, *a.byID[id])
	}
	return agents
}

func (a storedAgent) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, a.config.id)
	b = append(b, `,"object":"agent"`...)
	b = appendIntField(b, "created_at", a.createdAt)
	b = appendIntField(b, "updated_at", a.updated)
	b = appendKey(b, "name")
	b = appendStringOrNull(b, a.config.name)
	b = appendStringMap(appendKey(b, "metadata"), a.metadata)
	return append(a.config.appendSettings(b, true), '}')
}

type agentRequest struct {
	agentFields
	Metadata json.RawMessage `json:"metadata"`
}

func (s *Simulator) createAgent(w http.ResponseWriter, r *http.Request) error {
	var req agentRequest
	if err := s.decodeBody(w, r, &req); err != nil {
		return err
	}
	if req.Model == nil || *req.Model == "" {
		return invalidRequest("model is required.")
	}
	agent := storedAgent{config: newAgentConfig(newID("agent_")), createdAt: unixNow(), updated: unixNow()}
	if err := agent.update(&req); err != nil {
		return err
	}
	s.agents.put(agent)
	writeJSON(w, http.StatusOK, agent.append(nil))
	return nil
}

func (a *storedAgent) update(req *agentRequest) error {
	config, err := a.config.apply(&req.agentFields)
	if err != nil {
		return err
	}
	if req.Metadata != nil {
		if a.metadata, err = parseMetadata(req.Metadata); err != nil {
			return err
		}
	}
	a.config = config
	return nil
}

func (s *Simulator) getAgent(w http.ResponseWriter, r *http.Request) error {
	agent, ok := s.agents.get(r.PathValue("agent"))
	if !ok {
		return notFound("Agent", r.PathValue("agent"))
	}
	writeJSON(w, http.StatusOK, agent.append(nil))
	return nil
}

func (s *Simulator) updateAgent(w http.ResponseWriter, r *http.Request) error {
	agent, ok := s.agents.get(r.PathValue("agent"))
	if !ok {
		return notFound("Agent", r.PathValue("agent"))
	}
	var req agentRequest
	if err := s.decodeBody(w, r, &req); err != nil {
		return err
	}
	if err := agent.update(&req); err != nil {
		return err
	}
	agent.updated = unixNow()
	s.agents.put(agent)
	writeJSON(w, http.StatusOK, agent.append(nil))
	return nil
}

func (s *Simulator) deleteAgent(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("agent")
	if !s.cfg.Fixtures && !s.agents.remove(id) {
		return notFound("Agent", id)
	}
	b := appendString(append([]byte(nil), `{"id":`...), id)
	writeJSON(w, http.StatusOK, append(b, `,"object":"agent.deleted","deleted":true}`...))
	return nil
}

func (s *Simulator) listAgents(w http.ResponseWriter, r *http.Request) error {
	body, err := renderPage(s, r, s.agents.all(), func(a storedAgent) string { return a.config.id }, storedAgent.append)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}
