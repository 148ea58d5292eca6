package simulator

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

type webhookRequest struct {
	Name       *string  `json:"name"`
	URL        *string  `json:"url"`
	EventTypes []string `json:"event_types"`
}

func (s *Simulator) createWebhookEndpoint(w http.ResponseWriter, r *http.Request) error {
	var req webhookRequest
	if err := s.decodeBody(w, r, &req); err != nil {
		return err
	}
	if req.Name == nil || req.URL == nil || len(req.EventTypes) == 0 {
		return invalidRequest("name, url and event_types are required.")
	}
	e, err := s.hooks.register(WebhookEndpoint{URL: *req.URL, Name: *req.Name, EventTypes: req.EventTypes})
	if err != nil {
		return invalidRequest("%s.", err)
	}
	writeJSON(w, http.StatusOK, e.appendWithSecret(nil))
	return nil
}

func (s *Simulator) listWebhookEndpoints(w http.ResponseWriter, r *http.Request) error {
	body, err := renderPage(s, r, s.hooks.endpoints(), func(e *webhookEndpoint) string { return e.id },
		(*webhookEndpoint).append)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

func (s *Simulator) getWebhookEndpoint(w http.ResponseWriter, r *http.Request) error {
	e, err := s.hooks.find(r.PathValue("endpoint"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, e.append(nil))
	return nil
}

func (s *Simulator) updateWebhookEndpoint(w http.ResponseWriter, r *http.Request) error {
	var req webhookRequest
	if err := s.decodeBody(w, r, &req); err != nil {
		return err
	}
	if req.URL != nil {
		if err := checkWebhookURL(*req.URL); err != nil {
			return invalidRequest("%s.", err)
		}
	}
	e, err := s.hooks.replace(r.PathValue("endpoint"), func(e webhookEndpoint) *webhookEndpoint {
		if req.Name != nil {
			e.name = *req.Name
		}
		if req.URL != nil {
			e.url = *req.URL
		}
		if len(req.EventTypes) > 0 {
			e.eventTypes = req.EventTypes
		}
		e.updated = unixNow()
		return &e
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, e.append(nil))
	return nil
}

func (s *Simulator) deleteWebhookEndpoint(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("endpoint")
	if _, err := s.hooks.replace(id, func(webhookEndpoint) *webhookEndpoint { return nil }); err != nil {
		return err
	}
	b := appendString(append([]byte(nil), `{"id":`...), id)
	writeJSON(w, http.StatusOK, append(b, `,"object":"webhook_endpoint.deleted","deleted":true}`...))
	return nil
}

func (s *Simulator) rotateWebhookSecret(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		KeepOld *bool `json:"keep_old_secret_active_for_24_hours"`
	}
	if err := s.decodeBody(w, r, &req); err != nil {
		return err
	}
	e, err := s.hooks.replace(r.PathValue("endpoint"), func(e webhookEndpoint) *webhookEndpoint {
		e.oldSecret, e.oldUntil = "", time.Time{}
		if req.KeepOld != nil && *req.KeepOld {
			e.oldSecret, e.oldUntil = e.secret, time.Now().Add(24*time.Hour)
		}
		e.secret = newWebhookSecret()
		e.updated = unixNow()
		return &e
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, e.appendWithSecret(nil))
	return nil
}

// testWebhookEndpoint sends one event at once and tells how the endpoint answered.
func (s *Simulator) testWebhookEndpoint(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		EventType string `json:"event_type"`
	}
	if err := s.decodeBody(w, r, &req); err != nil {
		return err
	}
	e, err := s.hooks.find(r.PathValue("endpoint"))
	if err != nil {
		return err
	}
	probe := &session{id: "sess_test", environment: json.RawMessage(`{"type":"none"}`)}
	event := webhookEvent(probe, req.EventType)
	if strings.HasPrefix(req.EventType, "response.") {
		event = responseWebhookEvent("resp_test", req.EventType)
	}
	status, err := s.hooks.send(r.Context(), e, delivery{id: newID("wh_"), body: event})
	if err != nil {
		return invalidRequest("The endpoint could not be reached.")
	}
	b := append([]byte(nil), `{"object":"webhook_endpoint.test","success":true`...)
	b = appendIntField(b, "status_code", int64(status))
	b = appendStringField(b, "event_type", req.EventType)
	writeJSON(w, http.StatusOK, append(appendStringField(b, "webhook_endpoint_id", e.id), '}'))
	return nil
}

func (s *Simulator) listWebhookEventTypes(w http.ResponseWriter, _ *http.Request) error {
	body := `{"object":"list","data":["` + strings.Join(webhookEventTypes, `","`) + `"]}`
	writeJSON(w, http.StatusOK, []byte(body))
	return nil
}
