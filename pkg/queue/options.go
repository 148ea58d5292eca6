package queue

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	connectTimeout = 5 * time.Second
	drainTimeout   = 5 * time.Second
)

// options turns the configuration into the client's options. A missing or
// unreadable file is an error here, before anything connects.
func (c Config) options() ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name(c.Name),
		nats.Timeout(connectTimeout),
		nats.DrainTimeout(drainTimeout),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		// Rotated credentials must be able to end a time of refusals.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, time.Second),
		// A server that is cut off says nothing: it is noticed after 10 to 15 s.
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
	}
	if c.InProcess != nil {
		opts = append(opts, nats.InProcessServer(c.InProcess))
	}
	if c.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(c.InboxPrefix))
	}
	switch {
	case c.CredsFile != "":
		opts = append(opts, nats.UserCredentials(c.CredsFile))
	case c.NKeyFile != "":
		opt, err := nats.NkeyOptionFromSeed(c.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("queue: nkey file %s: %w; it must hold the user's seed", c.NKeyFile, err)
		}
		opts = append(opts, opt)
	case c.User != "":
		opts = append(opts, nats.UserInfo(c.User, c.Password))
	case c.Token != "":
		opts = append(opts, nats.Token(c.Token))
	}
	if c.TLS != nil {
		opts = append(opts, nats.Secure(c.TLS))
	}
	if c.CAFile != "" {
		opts = append(opts, nats.RootCAs(c.CAFile))
	}
	if c.CertFile != "" {
		opts = append(opts, nats.ClientCert(c.CertFile, c.KeyFile))
	}
	return opts, nil
}
