package app

import (
	"context"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/webhooks"
	"github.com/callfan/callfan/pkg/queue"
)

// triggerWebhook says that a webhook asked to look at a session.
const triggerWebhook = "webhook"

// openWebhooks receives OpenAI's webhooks. finished is told of responses that have
// ended; nil leaves them alone.
func (d *Dispatcher) openWebhooks(conn *queue.Conn, running *dispatcher.Dispatcher, finished func(ctx context.Context, response string) error) error {
	// A webhook reaches any replica: the one that serves the session hears of it here.
	stop, err := conn.OnNudge(func(session string) { running.Nudge(session, triggerWebhook) })
	if err != nil {
		return err
	}
	d.closes.push("nudges", func(context.Context) error { stop(); return nil })
	if d.opts.WebhookListen == "" {
		return nil
	}
	server, err := webhooks.New(webhooks.Config{
		Listen: d.opts.WebhookListen, Secret: d.opts.WebhookSecret, Finished: finished,
		ActionRequired: func(session string) bool {
			if running.Serves(session) {
				running.Nudge(session, triggerWebhook)
				return true
			}
			if err := conn.Nudge(session); err != nil {
				d.log.Warn("a webhook was not passed on; the session is looked at later", "session_id", session, "error", err)
			}
			return false
		},
		Count: d.metrics.Webhook, Logger: d.log,
	})
	if err != nil {
		return err
	}
	d.state.setWebhooks(server)
	d.closes.push("webhooks", server.Close)
	return nil
}

// WebhookAddr is the host:port of the webhooks; empty without, and before they are received.
func (d *Dispatcher) WebhookAddr() string {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	if d.state.webhooks == nil {
		return ""
	}
	return d.state.webhooks.Addr()
}
