package simulator

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// webhookEventTypes are the events an endpoint can ask for.
var webhookEventTypes = []string{
	"agent.session.created", "agent.session.in_progress", "agent.session.action_required", "agent.session.idle",
	"agent.session.failed",
	"response.completed", "response.failed", "response.incomplete", "response.cancelled",
}

// WebhookEndpoint is an endpoint registered from the start.
type WebhookEndpoint struct {
	// URL receives the deliveries; plain http is accepted.
	URL string
	// Secret signs them: "whsec_" and base64, or a raw string. Empty draws one.
	Secret string
	// EventTypes chooses events; empty means all.
	EventTypes []string
	// Name is for people.
	Name string
}

type webhookEndpoint struct {
	id, name, url      string
	eventTypes         []string
	secret             string
	oldSecret          string
	oldUntil           time.Time
	createdAt, updated int64
}

// webhookService keeps the endpoints and queues the events for delivery.
type webhookService struct {
	sim   *Simulator
	cfg   WebhookDelivery
	any   atomic.Bool // whether there are endpoints
	mu    sync.RWMutex
	list  []*webhookEndpoint // ascending creation; entries are replaced, not edited
	start sync.Once
	queue chan delivery
	http  *http.Client
}

func newWebhookService(s *Simulator, endpoints []WebhookEndpoint, cfg WebhookDelivery) (*webhookService, error) {
	h := &webhookService{sim: s, cfg: cfg.withDefaults()}
	h.http = &http.Client{
		Timeout:       h.cfg.Timeout,
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	h.queue = make(chan delivery, h.cfg.QueueSize)
	for _, e := range endpoints {
		if _, err := h.register(e); err != nil {
			return nil, fmt.Errorf("simulator: webhook endpoint %q: %w", e.URL, err)
		}
	}
	return h, nil
}

func (h *webhookService) register(e WebhookEndpoint) (*webhookEndpoint, error) {
	if err := checkWebhookURL(e.URL); err != nil {
		return nil, err
	}
	if len(e.EventTypes) == 0 {
		e.EventTypes = webhookEventTypes
	}
	if e.Secret == "" {
		e.Secret = newWebhookSecret()
	}
	now := unixNow()
	made := &webhookEndpoint{
		id: newID("whe_"), name: e.Name, url: e.URL, eventTypes: slices.Clone(e.EventTypes), secret: e.Secret,
		createdAt: now, updated: now,
	}
	h.mu.Lock()
	h.list = append(slices.Clip(h.list), made)
	h.any.Store(true)
	h.mu.Unlock()
	h.start.Do(h.startWorkers)
	return made, nil
}

func checkWebhookURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("url must be an http or https URL")
	}
	return nil
}

func newWebhookSecret() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // It never fails.
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

// endpoints returns a snapshot; its entries do not change.
func (h *webhookService) endpoints() []*webhookEndpoint {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.list
}

func (h *webhookService) find(id string) (*webhookEndpoint, error) {
	for _, e := range h.endpoints() {
		if e.id == id {
			return e, nil
		}
	}
	return nil, notFound("Webhook endpoint", id)
}

// replace changes one endpoint by making a new entry; nil removes it.
func (h *webhookService) replace(id string, change func(webhookEndpoint) *webhookEndpoint) (*webhookEndpoint, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.list, func(e *webhookEndpoint) bool { return e.id == id })
	if i < 0 {
		return nil, notFound("Webhook endpoint", id)
	}
	changed := change(*h.list[i])
	list := slices.Clone(h.list)
	if changed == nil {
		list = slices.Delete(list, i, i+1)
	} else {
		list[i] = changed
	}
	h.list = list
	h.any.Store(len(list) > 0)
	return changed, nil
}

// notify queues the event of a session for all endpoints that want it. It never waits.
func (h *webhookService) notify(s *session, kind string) {
	if !h.any.Load() {
		return
	}
	h.publish(kind, webhookEvent(s, kind))
}

// notifyResponse queues the event of a background response.
func (h *webhookService) notifyResponse(id, kind string) {
	if h.any.Load() {
		h.publish(kind, responseWebhookEvent(id, kind))
	}
}

func (h *webhookService) publish(kind string, event []byte) {
	id := newID("wh_")
	for _, e := range h.endpoints() {
		if !slices.Contains(e.eventTypes, kind) {
			continue
		}
		for range 1 + h.sim.sw.WebhookDuplicates {
			h.enqueue(delivery{endpointID: e.id, id: id, body: event})
		}
	}
}

// webhookEvent is content-free: which session, and what happened.
func webhookEvent(s *session, kind string) []byte {
	b := appendWebhookHead(nil, s.id, kind)
	if kind == "agent.session.action_required" {
		return append(b, `,"required_action":{"type":"function_call"}}}`...)
	}
	kindOf, err := environmentType(s.environment)
	if err != nil {
		kindOf = "none"
	}
	return append(appendStringField(b, "environment_type", kindOf), `}}`...)
}

func responseWebhookEvent(id, kind string) []byte {
	return append(appendWebhookHead(nil, id, kind), `}}`...)
}

// appendWebhookHead appends an event up to the id in its data.
func appendWebhookHead(b []byte, id, kind string) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, newID("evt_"))
	b = append(b, `,"object":"event"`...)
	b = appendIntField(b, "created_at", unixNow())
	b = appendStringField(b, "type", kind)
	b = append(b, `,"data":{"id":`...)
	return appendString(b, id)
}

func (e *webhookEndpoint) append(b []byte) []byte { return append(e.appendFields(b), '}') }

func (e *webhookEndpoint) appendFields(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, e.id)
	b = append(b, `,"object":"webhook_endpoint"`...)
	b = appendIntField(b, "created_at", e.createdAt)
	b = appendIntField(b, "updated_at", e.updated)
	b = appendStringField(b, "name", e.name)
	b = appendStringField(b, "url", e.url)
	b = appendStringField(b, "signing_secret_hint", "whsec_…"+e.secret[max(0, len(e.secret)-4):])
	b = append(appendKey(b, "event_types"), '[')
	for i, kind := range e.eventTypes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, kind)
	}
	return append(b, ']')
}

func (e *webhookEndpoint) appendWithSecret(b []byte) []byte {
	return append(appendStringField(e.appendFields(b), "signing_secret", e.secret), '}')
}
