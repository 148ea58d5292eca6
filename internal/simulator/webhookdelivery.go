package simulator

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// WebhookDelivery tunes how webhooks are delivered. The zero value works.
type WebhookDelivery struct {
	// MaxAttempts bounds the attempts of one delivery. Default 5; the real service tries for 72 hours.
	MaxAttempts int
	// BaseDelay is the pause after the first failure; it doubles up to 30 s. Default 200 ms.
	BaseDelay time.Duration
	// Timeout bounds one attempt. Default 10 s.
	Timeout time.Duration
	// Workers is the number of parallel deliveries. Default 8.
	Workers int
	// QueueSize bounds the deliveries that wait; more are counted as failed. Default 65536.
	QueueSize int
}

func (d WebhookDelivery) withDefaults() WebhookDelivery {
	if d.MaxAttempts <= 0 {
		d.MaxAttempts = 5
	}
	if d.BaseDelay <= 0 {
		d.BaseDelay = 200 * time.Millisecond
	}
	if d.Timeout <= 0 {
		d.Timeout = 10 * time.Second
	}
	if d.Workers <= 0 {
		d.Workers = 8
	}
	if d.QueueSize <= 0 {
		d.QueueSize = 1 << 16
	}
	return d
}

// delivery is one event for one endpoint.
type delivery struct {
	endpointID string
	id         string // webhook-id: the same for all attempts and duplicates
	body       []byte
	attempts   int
}

func (h *webhookService) enqueue(d delivery) {
	select {
	case h.queue <- d:
	default:
		h.sim.stats.webhooksFailed.Add(1)
		h.sim.log.Warn("webhook queue is full, event dropped", slog.String("webhook_id", d.id))
	}
}

func (h *webhookService) startWorkers() {
	for range h.cfg.Workers {
		h.sim.wg.Go(func() {
			defer h.http.CloseIdleConnections()
			for {
				select {
				case <-h.sim.ctx.Done():
					return
				case d := <-h.queue:
					h.deliver(d)
				}
			}
		})
	}
}

// deliver makes one attempt; a failed one is queued again after a growing pause.
func (h *webhookService) deliver(d delivery) {
	e, err := h.find(d.endpointID)
	if err != nil {
		return // The endpoint was deleted meanwhile.
	}
	status, err := h.send(h.sim.ctx, e, d)
	d.attempts++
	switch {
	case err == nil && status/100 == 2:
		h.sim.stats.webhooksDelivered.Add(1)
	case d.attempts >= h.cfg.MaxAttempts:
		h.sim.stats.webhooksFailed.Add(1)
		h.sim.log.Warn("webhook given up", slog.String("webhook_id", d.id), slog.Int("attempt", d.attempts))
	default:
		pause := min(h.cfg.BaseDelay<<min(d.attempts-1, 20), 30*time.Second)
		h.sim.after(pause, func() { h.enqueue(d) })
	}
}

// send signs and posts one event. A redirect is an answer like any other.
func (h *webhookService) send(ctx context.Context, e *webhookEndpoint, d delivery) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(d.body))
	if err != nil {
		return 0, err
	}
	timestamp := strconv.FormatInt(unixNow(), 10)
	signatures := "v1," + signWebhook(e.secret, d.id, timestamp, d.body)
	if e.oldSecret != "" && time.Now().Before(e.oldUntil) {
		signatures += " v1," + signWebhook(e.oldSecret, d.id, timestamp, d.body)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "callfan-simulator")
	req.Header.Set("webhook-id", d.id)
	req.Header.Set("webhook-timestamp", timestamp)
	req.Header.Set("webhook-signature", signatures)
	resp, err := h.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // So that the connection can be used again.
	return resp.StatusCode, nil
}

// signWebhook is the signature of the Standard Webhooks: HMAC-SHA256 over "id.timestamp.body" with the base64 part of
// a whsec_ secret, or the secret itself.
func signWebhook(secret, id, timestamp string, body []byte) string {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			key = decoded
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
