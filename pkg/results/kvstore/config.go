package kvstore

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/results"
)

// Config says how the bucket is made and how long it remembers. The zero value
// works.
type Config struct {
	// Bucket is the name of the bucket, of letters, digits, "-" and "_". Defaults
	// to "FX_RESULTS".
	Bucket string
	// Replicas of the bucket, when New creates it. Defaults to 1.
	Replicas int
	// MaxBytes bounds the bucket, when New creates it; a full bucket answers
	// results.ErrFull. Defaults to no bound of its own.
	MaxBytes int64
	// Storage of the bucket, when New creates it. Defaults to files.
	Storage jetstream.StorageType

	// Partitions is the installation's number of partitions; it decides to which
	// partition an attached session belongs. Defaults to results.DefaultPartitions.
	Partitions int
	// Retention is how long the markers of an ended turn are kept; the server
	// counts whole seconds, from 1. Defaults to results.DefaultRetention.
	Retention time.Duration
	// ActiveTTL is how long a turn with unfinished calls is kept after its last
	// change. Never less than Retention. Defaults to 7 days.
	ActiveTTL time.Duration

	// Parallel is how many requests of one batch may be under way at once.
	// Defaults to 32.
	Parallel int
	// FlushTimeout bounds the writing of one turn with its results and retries.
	// Defaults to 10 s.
	FlushTimeout time.Duration
}

// The defaults of Config.
const (
	DefaultBucket       = "FX_RESULTS"
	DefaultActiveTTL    = 7 * 24 * time.Hour
	DefaultParallel     = 32
	DefaultFlushTimeout = 10 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Bucket == "" {
		c.Bucket = DefaultBucket
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = -1
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
	if c.Parallel == 0 {
		c.Parallel = DefaultParallel
	}
	if c.FlushTimeout == 0 {
		c.FlushTimeout = DefaultFlushTimeout
	}
	return c
}
