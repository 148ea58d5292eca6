package runstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/internal/runs"
)

// Active calls each for every active run, and whenever one is created, cancelled or
// nudged, until ctx ends.
func (s *Store) Active(ctx context.Context, each func(id string)) error {
	watcher, err := s.kv.Watch(ctx, "active.*", jetstream.IgnoreDeletes())
	if err != nil {
		return explain(err)
	}
	defer func() { _ = watcher.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return errors.New("the watch over the runs ended")
			case entry != nil: // nil marks the end of what there was
				each(strings.TrimPrefix(entry.Key(), "active."))
			}
		}
	}
}

// Tell publishes a notice and does not wait.
func (s *Store) Tell(n runs.Notice) {
	body, err := json.Marshal(n)
	if err == nil {
		err = s.nc.Publish(s.cfg.Prefix+".run."+n.Run, body)
	}
	if err != nil {
		s.cfg.Logger.Debug("a notice about a run was not published", "run_id", n.Run, "error", err)
	}
}

// Follow calls each for the notices about a run that are still kept, from the one after
// the number on, and for those that come, until ctx ends or each returns false. Notices
// are numbered, not without gaps.
func (s *Store) Follow(ctx context.Context, id string, after uint64, each func(number uint64, notice json.RawMessage) bool) error {
	if _, err := key("run", id); err != nil {
		return err
	}
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{s.cfg.Prefix + ".run." + id}, DeliverPolicy: jetstream.DeliverAllPolicy}
	if after > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, after+1
	}
	consumer, err := s.stream.OrderedConsumer(ctx, cfg)
	if err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		m, err := messages.Next()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("jetstream: %w", err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if !each(meta.Sequence.Stream, m.Data()) {
			return nil
		}
	}
}
