package simulator

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

type (
	handlerFunc        func(w http.ResponseWriter, r *http.Request) error
	sessionHandlerFunc func(w http.ResponseWriter, r *http.Request, ses *session) error
)

// routes builds the handler. Every API path answers with and without the /v1 prefix.
func (s *Simulator) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+path, h)
		mux.HandleFunc(method+" /v1"+path, h)
	}
	agents := func(pattern string, at Endpoint, h handlerFunc) { handle(pattern, s.api(at, true, h)) }
	session := func(pattern string, at Endpoint, h sessionHandlerFunc) {
		agents(pattern, at, s.withSession(h))
	}
	plain := func(pattern string, h handlerFunc) { handle(pattern, s.api(EndpointOther, false, h)) }

	agents("POST /agents", EndpointOther, s.createAgent)
	agents("GET /agents", EndpointOther, s.listAgents)
	agents("GET /agents/{agent}", EndpointOther, s.getAgent)
	agents("POST /agents/{agent}", EndpointOther, s.updateAgent)
	agents("DELETE /agents/{agent}", EndpointOther, s.deleteAgent)

	agents("POST /agents/sessions", EndpointSessionCreate, s.createSession)
	agents("GET /agents/sessions", EndpointSessionList, s.listSessions)
	session("GET /agents/sessions/{session}", EndpointSessionGet, s.getSession)
	session("POST /agents/sessions/{session}", EndpointSessionUpdate, s.updateSession)
	agents("DELETE /agents/sessions/{session}", EndpointSessionDelete, s.deleteSession)
	session("POST /agents/sessions/{session}/events", EndpointEventsPost, s.postEvents)
	session("GET /agents/sessions/{session}/events", EndpointStream, s.streamEvents)
	session("GET /agents/sessions/{session}/items", EndpointHistory, s.listItems)
	session("GET /agents/sessions/{session}/turns", EndpointHistory, s.listTurns)
	session("GET /agents/sessions/{session}/turns/{turn}", EndpointHistory, s.getTurn)
	session("GET /agents/sessions/{session}/turns/{turn}/items", EndpointHistory, s.listTurnItems)
	s.sideRoutes(session)

	s.responseRoutes(func(pattern string, at Endpoint, h handlerFunc) { handle(pattern, s.api(at, false, h)) })

	plain("POST /webhook_endpoints", s.createWebhookEndpoint)
	plain("GET /webhook_endpoints", s.listWebhookEndpoints)
	plain("GET /webhook_endpoints/{endpoint}", s.getWebhookEndpoint)
	plain("POST /webhook_endpoints/{endpoint}", s.updateWebhookEndpoint)
	plain("DELETE /webhook_endpoints/{endpoint}", s.deleteWebhookEndpoint)
	plain("POST /webhook_endpoints/{endpoint}/rotate_secret", s.rotateWebhookSecret)
	plain("POST /webhook_endpoints/{endpoint}/test", s.testWebhookEndpoint)
	plain("GET /webhook_event_types", s.listWebhookEventTypes)

	mux.HandleFunc("GET /_sim/stats", answering(s.getStats))
	mux.HandleFunc("GET /_sim/results", answering(s.getResults))
	mux.HandleFunc("GET /_sim/outputs", answering(s.getOutputs))
	mux.HandleFunc("GET /_sim/responses", answering(s.getResponses))
	mux.HandleFunc("GET /_sim/faults", answering(s.getFaults))
	mux.HandleFunc("PUT /_sim/faults", answering(s.putFaults))
	mux.HandleFunc("/", answering(func(_ http.ResponseWriter, r *http.Request) error {
		return &apiError{
			status: http.StatusNotFound, kind: "invalid_request_error",
			message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")",
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", newID("req_"))
		mux.ServeHTTP(w, r)
	})
}

// answering serves h and writes its error.
func answering(h handlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { writeError(w, h(w, r)) }
}

func writeError(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	if e := (*apiError)(nil); errors.As(err, &e) {
		e.write(w)
		return
	}
	internalError().write(w)
}

// api wraps an API handler: the beta header is checked before authentication, then the faults strike.
func (s *Simulator) api(at Endpoint, beta bool, h handlerFunc) http.HandlerFunc {
	count := &s.stats.requests[slices.Index(endpoints[:], at)]
	return func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		if beta && !hasBeta(r.Header.Values("OpenAI-Beta")) {
			invalidBeta().write(w)
			return
		}
		if err := s.authenticate(r); err != nil {
			err.write(w)
			return
		}
		if r.Method != http.MethodGet {
			defer s.changed()
		}
		if s.strike(w, r, at) {
			return
		}
		if at != EndpointStream && s.faults.fire(at, FaultResponseLost) != FaultNone {
			_ = h(discardWriter{make(http.Header)}, r) // Its error is lost like an answer.
			panic(http.ErrAbortHandler)
		}
		writeError(w, h(w, r))
	}
}

func hasBeta(values []string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if strings.TrimSpace(part) == "agents=v1" {
				return true
			}
		}
	}
	return false
}

func (s *Simulator) authenticate(r *http.Request) *apiError {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	switch {
	case !strings.EqualFold(scheme, "Bearer") || key == "":
		return unauthorized("Send an API key in the header Authorization: Bearer KEY.")
	case len(s.cfg.APIKeys) > 0 && !slices.Contains(s.cfg.APIKeys, key):
		return unauthorized("The API key is not known.")
	}
	return nil
}

func (s *Simulator) withSession(h sessionHandlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := r.PathValue("session")
		ses, ok := s.sessions.get(id)
		if !ok {
			return notFound("Session", id)
		}
		return h(w, r, ses)
	}
}
