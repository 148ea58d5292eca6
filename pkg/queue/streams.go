package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// maxConsumers raises the server's default of 1,000 consumers per stream.
const maxConsumers = 5000

func (c *Conn) storage() jetstream.StorageType {
	if c.cfg.Storage == StorageMemory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// streams are all streams of the installation, as they should be.
func (c *Conn) streams() []jetstream.StreamConfig {
	queue := func(name, subject, description string, maxBytes int64, duplicates time.Duration) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: []string{subject}, Description: description,
			Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, MaxBytes: maxBytes,
			MaxMsgSize:   int32(min(c.nc.MaxPayload(), 1<<30)), //nolint:gosec // bounded
			MaxConsumers: maxConsumers, Duplicates: duplicates,
			Storage: c.storage(), Replicas: c.cfg.Replicas,
		}
	}
	log := func(name, description string, maxBytes int64, age time.Duration, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: subjects, Description: description,
			Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, MaxBytes: maxBytes, MaxAge: age,
			Storage: c.storage(), Replicas: c.cfg.Replicas,
		}
	}
	calls := queue(c.names.calls(), c.names.call("*"), "calls on their way to executors", c.cfg.CallsMaxBytes, c.cfg.DuplicateWindow)
	calls.MaxMsgsPerSubject, calls.DiscardNewPerSubject, calls.AllowMsgTTL = c.cfg.Backlog, true, true
	results := queue(c.names.results(), c.names.prefix+".result.*.*", "outcomes on their way to dispatchers", c.cfg.ResultsMaxBytes, c.cfg.ResultsDuplicateWindow)
	advisories := "$JS.EVENT.ADVISORY.CONSUMER."
	return []jetstream.StreamConfig{
		calls, results,
		log(c.names.deads(), "messages that could not be used", c.cfg.DeadMaxBytes, c.cfg.DeadMaxAge, c.names.dead("*")),
		log(c.names.advisory(), "the server's notices about calls given up", max(c.cfg.DeadMaxBytes/8, mib), 3*24*time.Hour,
			advisories+"MAX_DELIVERIES."+c.names.calls()+".>", advisories+"MSG_TERMINATED."+c.names.calls()+".>"),
	}
}

// ensureStream makes the stream, or changes one that may be changed. A stream that
// belongs to somebody else or keeps messages in another way is left alone.
func (c *Conn) ensureStream(ctx context.Context, want jetstream.StreamConfig) error {
	stream, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = c.js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return errRaced
		}
		return c.streamError(want, err)
	}
	if err != nil {
		return c.streamError(want, err)
	}
	have := stream.CachedInfo().Config
	if err := compatible(have, want); err != nil {
		return err
	}
	if sameStream(have, want) {
		return nil
	}
	_, err = c.js.UpdateStream(ctx, want)
	return c.streamError(want, err)
}

func compatible(have, want jetstream.StreamConfig) error {
	name := want.Name
	conflict := func(what string, have, want any) error {
		return fmt.Errorf("%w: stream %s has %s %v, and this installation needs %v; "+
			"choose another prefix, or delete the stream once it is empty", ErrIncompatible, name, what, have, want)
	}
	switch {
	case !slices.Equal(have.Subjects, want.Subjects):
		return conflict("subjects", have.Subjects, want.Subjects)
	case have.Retention != want.Retention:
		return conflict("retention", have.Retention, want.Retention)
	case have.Storage != want.Storage:
		return conflict("storage", have.Storage, want.Storage)
	}
	return nil
}

func sameStream(have, want jetstream.StreamConfig) bool {
	return have.Discard == want.Discard && have.MaxBytes == want.MaxBytes && have.MaxAge == want.MaxAge &&
		(want.MaxMsgSize == 0 || have.MaxMsgSize == want.MaxMsgSize) &&
		(want.MaxConsumers == 0 || have.MaxConsumers == want.MaxConsumers) &&
		(want.MaxMsgsPerSubject == 0 || have.MaxMsgsPerSubject == want.MaxMsgsPerSubject) &&
		(want.Duplicates == 0 || have.Duplicates == want.Duplicates) &&
		have.Replicas == want.Replicas && have.AllowMsgTTL == want.AllowMsgTTL && have.DiscardNewPerSubject == want.DiscardNewPerSubject
}

func (c *Conn) streamError(want jetstream.StreamConfig, err error) error {
	if err == nil {
		return nil
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case 10023, 10028, 10047:
			return fmt.Errorf("stream %s reserves %d MiB and the server has no room for that: "+
				"raise the server's JetStream limits or lower the stream's maximum: %w", want.Name, want.MaxBytes/mib, err)
		case 10065:
			return fmt.Errorf("%w: another stream already captures %s; choose another prefix: %w",
				ErrIncompatible, strings.Join(want.Subjects, ", "), err)
		case 10005, 10074:
			return fmt.Errorf("stream %s needs %d replicas, more than the cluster has servers: %w", want.Name, want.Replicas, err)
		case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
			return fmt.Errorf("JetStream is not enabled on this server or account; start nats-server with -js: %w", err)
		}
	}
	return fmt.Errorf("stream %s: %w", want.Name, err)
}
