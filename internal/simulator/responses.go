package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

func (s *Simulator) responseRoutes(handle func(pattern string, at Endpoint, h handlerFunc)) {
	handle("POST /responses", EndpointResponseCreate, s.createResponse)
	handle("POST /responses/input_tokens", EndpointResponseOther, s.countInputTokens)
	handle("GET /responses/{response}", EndpointResponseGet, s.withResponse(s.getResponse))
	handle("DELETE /responses/{response}", EndpointResponseOther, s.withResponse(s.deleteResponse))
	handle("POST /responses/{response}/cancel", EndpointResponseCancel, s.withResponse(s.cancelResponse))
	handle("GET /responses/{response}/input_items", EndpointResponseOther, s.withResponse(s.listInputItems))
	handle("POST /conversations", EndpointResponseOther, s.createConversation)
	handle("GET /conversations/{conversation}", EndpointResponseOther, s.withConversation(s.getConversation))
	handle("POST /conversations/{conversation}", EndpointResponseOther, s.withConversation(s.updateConversation))
	handle("DELETE /conversations/{conversation}", EndpointResponseOther, s.withConversation(s.deleteConversation))
	handle("POST /conversations/{conversation}/items", EndpointResponseOther, s.withConversation(s.addConversationItems))
	handle("GET /conversations/{conversation}/items", EndpointResponseOther, s.withConversation(s.listConversationItems))
	handle("GET /conversations/{conversation}/items/{item}", EndpointResponseOther, s.withConversation(s.getConversationItem))
	handle("DELETE /conversations/{conversation}/items/{item}", EndpointResponseOther, s.withConversation(s.deleteConversationItem))
}

// createResponse is POST /responses. Two equal requests make two responses, unless Switches.ResponseIdempotency is on.
func (s *Simulator) createResponse(w http.ResponseWriter, r *http.Request) error {
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	req, err := s.parseResponseRequest(body)
	if err != nil {
		return err
	}
	key := r.Header.Get("Idempotency-Key")
	if key != "" && s.sw.ResponseIdempotency {
		if known, ok := s.responses.keyed(key, body); ok {
			s.stats.replays.Add(1)
			return s.answerCreation(w, r, req, known.made)
		}
	}
	made, err := s.newResponse(req)
	if err != nil {
		return err
	}
	if key != "" && s.sw.ResponseIdempotency {
		s.responses.keep(key, body, made)
	}
	made.run()
	return s.answerCreation(w, r, req, made)
}

// run plays the response: at once when it takes no time, and else on its own goroutine, so that it does not depend on
// the client's connection.
func (r *response) run() {
	cfg := &r.sim.cfg
	takesTime := r.background || cfg.ModelDelay > 0 || cfg.StreamDelay > 0 ||
		slices.ContainsFunc(r.generation.Items, func(u utterance) bool { return u.After > 0 })
	if takesTime {
		go r.play()
		return
	}
	r.play()
}

// resume plays a response that a restart interrupted.
func (r *response) resume() {
	r.mu.Lock()
	ended := r.status.ended()
	r.mu.Unlock()
	if !ended {
		r.run()
	}
}

func (s *Simulator) answerCreation(w http.ResponseWriter, r *http.Request, req *responseRequest, made *response) error {
	if req.stream {
		made.serve(w, r, 0, req.obfuscate)
		return nil
	}
	if !req.background && !made.wait(r.Context()) {
		return internalError()
	}
	made.mu.Lock()
	b := made.append(nil)
	made.mu.Unlock()
	writeJSON(w, http.StatusOK, b)
	return nil
}

// newResponse makes a response of a request that fits what came before it.
func (s *Simulator) newResponse(req *responseRequest) (_ *response, err error) {
	base, conv, err := s.contextFor(req)
	if err != nil {
		return nil, err
	}
	s.responses.receive(req.input)
	made := &response{
		sim: s, id: newID("resp_"), created: time.Now(), background: req.background, stored: req.store,
		streamed: req.stream, echo: req.appendEcho(nil), previous: req.previous, metadata: req.fields["metadata"],
		base: base, input: req.input, conversation: conv, status: responseInProgress, changed: make(chan struct{}),
	}
	if req.background {
		made.status = responseQueued
	}
	if conv != nil {
		if !conv.claim(made) {
			return nil, refused("", "conversation_locked",
				"Another process is currently operating on this conversation. Please retry in a few seconds.")
		}
		made.base = conv.snapshot()
		defer func() {
			if err != nil {
				conv.release(made, false)
			}
		}()
	}
	if err := s.resolve(made.input); err != nil {
		return nil, err
	}
	if err := s.checkPairing(made.base, made.input); err != nil {
		return nil, err
	}
	items := append(append(make([]*responseItem, 0, len(made.base)+len(made.input)), made.base...), made.input...)
	task := modelTask{
		items: items, tools: withLoaded(req.tools, items), rawTools: req.fields["tools"], choice: req.choice,
		parallel: req.parallel, reasoning: req.withReason,
	}
	if made.generation, err = task.think(); err != nil {
		return nil, err
	}
	s.stats.responses.Add(1)
	s.responses.add(made)
	return made, nil
}

// withLoaded adds the tools that searches have found to those of the request.
func withLoaded(tools []responseTool, items []*responseItem) []responseTool {
	all := append([]responseTool(nil), tools...)
	for _, it := range items {
		for _, loaded := range it.tools {
			loaded.deferred = false
			known := false
			for i := range all {
				if all[i].kind == loaded.kind && all[i].name == loaded.name && all[i].namespace == loaded.namespace {
					all[i].deferred, known = false, true
				}
			}
			if !known {
				all = append(all, loaded)
			}
		}
	}
	return all
}

// contextFor returns the items that a request continues, or the conversation that has them.
func (s *Simulator) contextFor(req *responseRequest) ([]*responseItem, *conversation, error) {
	switch {
	case req.conversation != "":
		conv, ok := s.findConversation(req.conversation)
		if !ok {
			return nil, nil, unknownConversation(req.conversation)
		}
		return nil, conv, nil
	case req.previous != "":
		previous, ok := s.getStored(req.previous)
		if !ok {
			return nil, nil, refused("previous_response_id", "previous_response_not_found",
				"Previous response with id '%s' not found.", req.previous)
		}
		previous.mu.Lock()
		status := previous.status
		previous.mu.Unlock()
		if status != responseCompleted && status != responseIncomplete {
			return nil, nil, refused("previous_response_id", "",
				"Previous response with id '%s' cannot be continued: its status is %s.", req.previous, status)
		}
		return previous.context(), nil, nil
	}
	return nil, nil, nil
}

func (s *Simulator) withResponse(h func(http.ResponseWriter, *http.Request, *response) error) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := r.PathValue("response")
		found, ok := s.getStored(id)
		if !ok {
			return unknownObject("Response with id '%s' not found.", id)
		}
		return h(w, r, found)
	}
}

func (s *Simulator) getResponse(w http.ResponseWriter, r *http.Request, found *response) error {
	query := r.URL.Query()
	if raw := query.Get("stream"); raw != "" {
		stream, err := strconv.ParseBool(raw)
		if err != nil || raw == "1" || raw == "0" {
			return refused("stream", "invalid_type", "Invalid type for 'stream': expected a boolean.")
		}
		if stream {
			return s.resumeResponse(w, r, found)
		}
	}
	found.mu.Lock()
	b := found.append(nil)
	found.mu.Unlock()
	writeJSON(w, http.StatusOK, b)
	return nil
}

// resumeResponse streams the events after starting_after, from the first on without it.
func (s *Simulator) resumeResponse(w http.ResponseWriter, r *http.Request, found *response) error {
	query := r.URL.Query()
	if !found.streamed || s.sw.ResumeBackgroundOnly && !found.background {
		return refused("stream", "invalid_request_error",
			"This response cannot be streamed because it was not created with stream=true or the stream TTL has expired.")
	}
	from := 0
	if raw := query.Get("starting_after"); raw != "" {
		after, err := strconv.Atoi(raw)
		if err != nil || after < 0 {
			return refused("starting_after", "invalid_type", "Invalid type for 'starting_after': expected an integer.")
		}
		from = after + 1
	}
	found.serve(w, r, from, s.sw.Obfuscation && query.Get("include_obfuscation") != "false")
	return nil
}

// cancelResponse ends a background response. One that has ended is returned as it is.
func (s *Simulator) cancelResponse(w http.ResponseWriter, _ *http.Request, found *response) error {
	if !found.background {
		return refused("", "", "Cannot cancel a synchronous response.")
	}
	found.step(func() { found.end(responseCancelled) })
	found.mu.Lock()
	b := found.append(nil)
	found.mu.Unlock()
	writeJSON(w, http.StatusOK, b)
	return nil
}

// deleteResponse forgets a response; one that is running is cancelled.
func (s *Simulator) deleteResponse(w http.ResponseWriter, _ *http.Request, found *response) error {
	found.step(func() { found.end(responseCancelled) })
	if !found.pinned {
		s.responses.remove(found)
	}
	b := appendString([]byte(`{"id":`), found.id)
	writeJSON(w, http.StatusOK, append(b, `,"object":"response","deleted":true}`...))
	return nil
}

// listInputItems lists the items of the request itself, not those that it continued.
func (s *Simulator) listInputItems(w http.ResponseWriter, r *http.Request, found *response) error {
	body, err := renderPage(s, r, found.input, responseItemID, renderResponseItem)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

// countInputTokens guesses from the size.
func (s *Simulator) countInputTokens(w http.ResponseWriter, r *http.Request) error {
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	b := appendIntField([]byte(`{"object":"response.input_tokens"`), "input_tokens", int64(len(body)/4+1))
	writeJSON(w, http.StatusOK, append(b, '}'))
	return nil
}
