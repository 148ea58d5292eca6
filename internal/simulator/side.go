package simulator

import (
	"net/http"
	"slices"
	"strconv"
)

// sideObjects are what the simulator has only as fixtures: its model starts no subagents, publishes no artifacts and
// asks for no approvals.
type sideObjects struct {
	subagents []*subagent
	artifacts []artifact
	approvals []string // request ids
}

type subagent struct {
	id      string
	session *session
	turns   []*turn
	items   []*item
}

type artifact struct {
	id, sessionID, turnID, environmentID string
	content                              string
}

func (o *sideObjects) approval(requestID string) bool {
	return slices.Contains(o.approvals, requestID)
}

func (o *sideObjects) appendRequired(b []byte, more bool) []byte {
	for _, id := range o.approvals {
		if more {
			b = append(b, ',')
		}
		more = true
		b = append(b, `{"type":"computer_use_approval_request","request_id":`...)
		b = appendString(b, id)
		b = append(b, `,"turn_id":"turn_id","request":{"type":"browser_origin_access",`...)
		b = append(b, `"origin":"https://example.com","reason":null}}`...)
	}
	return b
}

func (a *subagent) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, a.id)
	b = append(b, `,"object":"agent.session.subagent"`...)
	b = appendStringField(b, "session_id", a.session.id)
	b = appendStringField(b, "parent_agent_id", a.session.agent.id)
	b = appendIntField(b, "opened_at", a.session.createdAt)
	return append(b, `,"closed_at":null,"name":null,"instructions":null,"status":"active"}`...)
}

func (a artifact) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, a.id)
	b = append(b, `,"object":"agent.session.artifact"`...)
	b = appendStringField(b, "session_id", a.sessionID)
	b = appendStringField(b, "turn_id", a.turnID)
	b = appendStringField(b, "environment_id", a.environmentID)
	b = appendStringField(b, "path", "/workspace/"+a.id)
	b = appendIntField(b, "created_at", unixNow())
	return append(appendIntField(b, "size_bytes", int64(len(a.content))), '}')
}

// sideRoutes registers subagents, artifacts and traces.
func (s *Simulator) sideRoutes(route func(pattern string, at Endpoint, h sessionHandlerFunc)) {
	const base = "/agents/sessions/{session}"
	list := func(path string, h func(*http.Request, *session) ([]byte, error)) {
		route("GET "+base+path, EndpointHistory, func(w http.ResponseWriter, r *http.Request, ses *session) error {
			return locked(w, ses, func() ([]byte, error) { return h(r, ses) })
		})
	}
	list("/subagents", func(r *http.Request, ses *session) ([]byte, error) {
		return renderPage(s, r, ses.subagents(), func(a *subagent) string { return a.id }, (*subagent).append)
	})
	list("/subagents/{subagent}", s.ofSubagent(func(_ *http.Request, a *subagent) ([]byte, error) {
		return a.append(nil), nil
	}))
	list("/subagents/{subagent}/items", s.ofSubagent(func(r *http.Request, a *subagent) ([]byte, error) {
		return renderPage(s, r, a.items, itemID, (*item).append)
	}))
	list("/subagents/{subagent}/turns", s.ofSubagent(func(r *http.Request, a *subagent) ([]byte, error) {
		return renderPage(s, r, a.turns, turnID, (*turn).append)
	}))
	list("/subagents/{subagent}/turns/{turn}", s.ofSubagent(func(r *http.Request, a *subagent) ([]byte, error) {
		for _, t := range a.turns {
			if t.id == r.PathValue("turn") {
				return t.append(nil), nil
			}
		}
		return nil, notFound("Turn", r.PathValue("turn"))
	}))
	list("/subagents/{subagent}/turns/{turn}/items", s.ofSubagent(func(r *http.Request, a *subagent) ([]byte, error) {
		return renderPage(s, r, a.items, itemID, (*item).append)
	}))
	list("/artifacts", func(r *http.Request, ses *session) ([]byte, error) {
		return renderPage(s, r, ses.artifacts(), func(a artifact) string { return a.id }, artifact.append)
	})
	list("/artifacts/{artifact}", func(r *http.Request, ses *session) ([]byte, error) {
		a, err := ses.findArtifact(r.PathValue("artifact"))
		if err != nil {
			return nil, err
		}
		return a.append(nil), nil
	})
	list("/traces", func(r *http.Request, _ *session) ([]byte, error) {
		return renderPage(s, r, nil, turnID, (*turn).append)
	})
	route("GET "+base+"/artifacts/{artifact}/content", EndpointHistory, getArtifactContent)
	route("DELETE "+base+"/artifacts/{artifact}", EndpointHistory, deleteArtifact)
}

func (s *Simulator) ofSubagent(h func(*http.Request, *subagent) ([]byte, error),
) func(*http.Request, *session) ([]byte, error) {
	return func(r *http.Request, ses *session) ([]byte, error) {
		for _, a := range ses.subagents() {
			if a.id == r.PathValue("subagent") {
				return h(r, a)
			}
		}
		return nil, notFound("Subagent", r.PathValue("subagent"))
	}
}

func (s *session) subagents() []*subagent {
	if s.side == nil {
		return nil
	}
	return s.side.subagents
}

func (s *session) artifacts() []artifact {
	if s.side == nil {
		return nil
	}
	return s.side.artifacts
}

func (s *session) findArtifact(id string) (artifact, error) {
	for _, a := range s.artifacts() {
		if a.id == id {
			return a, nil
		}
	}
	return artifact{}, notFound("Artifact", id)
}

func getArtifactContent(w http.ResponseWriter, r *http.Request, ses *session) error {
	a, err := ses.findArtifact(r.PathValue("artifact"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(a.content)))
	_, _ = w.Write([]byte(a.content))
	return nil
}

// deleteArtifact answers for a fixture, which stays.
func deleteArtifact(w http.ResponseWriter, r *http.Request, ses *session) error {
	a, err := ses.findArtifact(r.PathValue("artifact"))
	if err != nil {
		return err
	}
	b := appendString(append([]byte(nil), `{"id":`...), a.id)
	writeJSON(w, http.StatusOK, append(b, `,"object":"agent.session.artifact.deleted","deleted":true}`...))
	return nil
}
