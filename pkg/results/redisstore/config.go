package redisstore

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/callfan/callfan/pkg/results"
)

// Config says where Redis is and how long it remembers. The zero value is a
// Redis on 127.0.0.1:6379.
type Config struct {
	// URL of a single Redis: redis://, rediss:// (TLS) or unix://, with the
	// options of go-redis as query parameters. Defaults to redis://127.0.0.1:6379.
	URL string
	// Universal, when set, is used instead of URL: several Addrs make a Cluster
	// client, a MasterName a Sentinel client.
	Universal *redis.UniversalOptions
	// Client, when set, is used instead of URL and Universal. Close leaves it
	// open. Set its ContextTimeoutEnabled, else deadlines do not reach the socket.
	Client redis.UniversalClient
	// Username and Password, when not empty, override those of URL or Universal.
	// They are never logged.
	Username, Password string
	// TLS, when set, overrides the TLS settings of URL or Universal.
	TLS *tls.Config

	// Prefix starts every key, so that several installations can share a Redis.
	// Defaults to "fx".
	Prefix string
	// Partitions is the installation's number of partitions; it decides to which
	// partition an attached session belongs. Defaults to results.DefaultPartitions.
	Partitions int
	// Retention is how long the markers of an ended turn are kept. Defaults to
	// results.DefaultRetention.
	Retention time.Duration
	// ActiveTTL is how long a turn with unfinished calls is kept after its last
	// change. Never less than Retention. Defaults to 7 days.
	ActiveTTL time.Duration

	// Lanes is how many pipelines may be under way at once for claims,
	// completions and moves. More lanes mean smaller batches. Defaults to 2.
	Lanes int
	// BatchSize is the largest number of scripts in one pipeline. Defaults to 256.
	BatchSize int
	// FlushTimeout bounds one pipeline with its retries. Defaults to 10 s.
	FlushTimeout time.Duration
}

// The defaults of Config.
const (
	DefaultURL          = "redis://127.0.0.1:6379"
	DefaultPrefix       = "fx"
	DefaultActiveTTL    = 7 * 24 * time.Hour
	DefaultLanes        = 2
	DefaultBatchSize    = 256
	DefaultFlushTimeout = 10 * time.Second
)

// ErrInvalidURL is returned by New when the URL cannot be read. It does not
// repeat the URL, which may hold a password.
var ErrInvalidURL = errors.New(
	"the Redis URL cannot be read: want redis://, rediss:// or unix://, with special characters of the password percent-encoded")

func (c Config) withDefaults() Config {
	if c.URL == "" {
		c.URL = DefaultURL
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Partitions == 0 {
		c.Partitions = results.DefaultPartitions
	}
	if c.Retention == 0 {
		c.Retention = results.DefaultRetention
	}
	if c.ActiveTTL == 0 {
		c.ActiveTTL = DefaultActiveTTL
	}
	c.ActiveTTL = max(c.ActiveTTL, c.Retention)
	if c.Lanes == 0 {
		c.Lanes = DefaultLanes
	}
	if c.BatchSize == 0 {
		c.BatchSize = DefaultBatchSize
	}
	if c.FlushTimeout == 0 {
		c.FlushTimeout = DefaultFlushTimeout
	}
	return c
}

// open makes the client, and says whether the store has to close it.
func (c Config) open() (client redis.UniversalClient, own bool, err error) {
	// The maintenance notices of Redis Enterprise would cost each connection a
	// handshake that other servers refuse.
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch {
	case c.Client != nil:
		return c.Client, false, nil
	case c.Universal != nil:
		opts := *c.Universal
		opts.ContextTimeoutEnabled = true
		if opts.MaintNotificationsConfig == nil {
			opts.MaintNotificationsConfig = quiet
		}
		c.override(&opts.Username, &opts.Password, &opts.TLSConfig)
		return redis.NewUniversalClient(&opts), true, nil
	}
	opts, err := redis.ParseURL(c.URL)
	if err != nil {
		return nil, false, ErrInvalidURL
	}
	opts.ContextTimeoutEnabled = true
	opts.MaintNotificationsConfig = quiet
	c.override(&opts.Username, &opts.Password, &opts.TLSConfig)
	return redis.NewClient(opts), true, nil
}

func (c Config) override(username, password *string, settings **tls.Config) {
	if c.Username != "" {
		*username = c.Username
	}
	if c.Password != "" {
		*password = c.Password
	}
	if c.TLS != nil {
		*settings = c.TLS
	}
}
