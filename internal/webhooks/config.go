package webhooks

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"
)

// Path is where webhooks are received.
const Path = "/webhooks/openai"

// DefaultTimeout bounds the handling of one webhook when Config.Timeout is zero. OpenAI
// waits for a few seconds only.
const DefaultTimeout = 5 * time.Second

// maxBody bounds a webhook. They have no content beside ids.
const maxBody = 256 << 10

// Config sets a server up.
type Config struct {
	// Listen is the host:port to listen on. Required.
	Listen string
	// Secret is the endpoint's signing secret. Required. It appears in no error and in no log.
	Secret string
	// ActionRequired has a session looked at, and says whether this replica serves it.
	// Required. It must not block.
	ActionRequired func(session string) (served bool)
	// Finished has the run of a response look at it. After an error the webhook is refused,
	// so that it comes again. Without it such webhooks are only counted.
	Finished func(ctx context.Context, response string) error
	// Count is told of each webhook: its type, or Other, and one of the results. Optional.
	Count func(event, result string)
	// Timeout bounds the handling of one webhook. Defaults to DefaultTimeout.
	Timeout time.Duration
	// Logger defaults to no logging.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Count == nil {
		c.Count = func(string, string) {}
	}
	return c
}

// Check says whether a server may listen on the address with this secret.
func Check(listen, secret string) error {
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return fmt.Errorf("webhook address %q: want host:port: %w", listen, err)
	}
	return checkSecret(secret)
}

// minSecret keeps guessable secrets out.
const minSecret = 16

// checkSecret refuses what the official client would refuse at every webhook.
func checkSecret(secret string) error {
	if secret == "" {
		return errors.New("webhooks need the signing secret of their endpoint: set OPENAI_WEBHOOK_SECRET, or name a file that holds it")
	}
	encoded, prefixed := strings.CutPrefix(secret, "whsec_")
	if !prefixed {
		if len(secret) < minSecret {
			return fmt.Errorf("the webhook secret has %d characters; use the one that OpenAI shows for the endpoint (whsec_…), or at least %d", len(secret), minSecret)
		}
		return nil
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) < 24 {
		return errors.New("the webhook secret starts with whsec_ and does not go on as OpenAI's do; copy it whole")
	}
	return nil
}
