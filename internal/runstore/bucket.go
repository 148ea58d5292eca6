package runstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/internal/runs"
)

// Config says where runs are kept. Its zero value works.
type Config struct {
	// Prefix is the installation's: in upper case the beginning of the names of the bucket
	// and the stream, and the first token of the notices' subjects. Defaults to "fn".
	Prefix string
	// Keep is how long an entry is kept after its last change. It has to be longer than
	// the longest run. Defaults to 7 days.
	Keep time.Duration
	// Replicas and Storage are those of the bucket; Storage defaults to files.
	Replicas int
	Storage  jetstream.StorageType
	// MaxBytes bounds the bucket; when it is full no run can go on. Defaults to 1 GiB,
	// or 128 MiB in memory.
	MaxBytes int64
	// NoticesKeep is how long notices can be read again. Defaults to 1 h.
	NoticesKeep time.Duration
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

const mib = int64(1) << 20

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, "fn")
	c.Keep = cmp.Or(c.Keep, 7*24*time.Hour)
	c.Replicas = cmp.Or(c.Replicas, 1)
	bytes := 1024 * mib
	if c.Storage == jetstream.MemoryStorage {
		bytes = 128 * mib
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, bytes)
	c.NoticesKeep = cmp.Or(c.NoticesKeep, time.Hour)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Store is a runs.Store and the runs.Notices, on JetStream.
type Store struct {
	cfg    Config
	nc     *nats.Conn
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	stream jetstream.Stream // of the notices
}

var (
	_ runs.Store   = (*Store)(nil)
	_ runs.Notices = (*Store)(nil)
)

// Open finds the bucket and the stream, or makes them. Several replicas may do so at once.
func Open(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, cfg Config) (*Store, error) {
	s := &Store{cfg: cfg.withDefaults(), nc: nc, js: js}
	name := s.cfg.bucket()
	if _, err := ensure(ctx, js, bucketConfig(name, s.cfg)); err != nil {
		return nil, err
	}
	kv, err := js.KeyValue(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	s.kv = kv
	s.stream, err = ensure(ctx, js, noticesConfig(name+noticesSuffix, s.cfg))
	return s, err
}

// Remove deletes the bucket and the stream of an installation with all that is in them.
// What is not there is not missed.
func Remove(ctx context.Context, js jetstream.JetStream, cfg Config) error {
	name := cfg.withDefaults().bucket()
	var errs []error
	for _, stream := range []string{"KV_" + name, name + noticesSuffix} {
		if err := js.DeleteStream(ctx, stream); !errors.Is(err, jetstream.ErrStreamNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

const noticesSuffix = "_NOTICES"

func (c Config) bucket() string { return strings.ToUpper(c.Prefix) + "_RUNS" }

// ensure finds a stream or makes it. One that keeps its messages for another time is changed.
func ensure(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, cfg)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster, with other settings
			stream, err = js.Stream(ctx, cfg.Name)
		}
	}
	if err == nil && stream.CachedInfo().Config.MaxAge != cfg.MaxAge {
		changed := stream.CachedInfo().Config
		changed.MaxAge = cfg.MaxAge
		stream, err = js.UpdateStream(ctx, changed)
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", cfg.Name, err)
	}
	return stream, nil
}

// bucketConfig is a key-value bucket, but that with replicas it is read from its leader
// only: the others may answer with what was before the last write.
func bucketConfig(name string, c Config) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, Description: "callfan: runs of the Responses API",
		MaxMsgsPerSubject: 1, MaxBytes: c.MaxBytes, MaxMsgs: -1, MaxMsgSize: -1, MaxConsumers: -1, MaxAge: c.Keep,
		Discard: jetstream.DiscardNew, Storage: c.Storage, Replicas: c.Replicas,
		AllowRollup: true, DenyDelete: true, AllowDirect: c.Replicas == 1, Duplicates: min(c.Keep, 2*time.Minute),
	}
}

// noticesConfig is a short memory that need not be durable.
func noticesConfig(name string, c Config) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{c.Prefix + ".run.*"}, Description: "callfan: notices about runs, for displays",
		MaxAge: c.NoticesKeep, MaxBytes: 64 * mib, MaxMsgsPerSubject: 20_000, MaxConsumers: -1, NoAck: true,
		Discard: jetstream.DiscardOld, Storage: jetstream.MemoryStorage, Replicas: 1, AllowDirect: true,
	}
}
