package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxDeliver ends a message that no lease could finish; the executors' own crash
	// limit is far below it.
	maxDeliver = 20
	// maxWaiting is how many pulls may be open at a consumer.
	maxWaiting = 8192
	maxExpires = time.Minute
)

func (c *Conn) poolConfig(pool string, filters []string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: poolDurable(pool), FilterSubjects: filters,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.cfg.AckWait, MaxDeliver: maxDeliver,
		MaxAckPending: c.cfg.MaxAckPending, MaxWaiting: maxWaiting,
		MaxRequestBatch: maxPull, MaxRequestExpires: maxExpires,
	}
}

// applyPool makes the pool's consumer take exactly the agreed functions. It changes
// nothing that is right, and looks again at the agreed set afterwards, since
// another dispatcher may have changed both meanwhile.
func (r *Registry) applyPool(ctx context.Context, pool string) error {
	for {
		tokens, revision, err := r.poolTokens(ctx, pool)
		if err != nil {
			return err
		}
		if err := r.setFilters(ctx, pool, tokens); err != nil {
			return err
		}
		_, after, err := r.poolTokens(ctx, pool)
		if err != nil {
			return err
		}
		if after == revision {
			r.checked[pool] = time.Now()
			return nil
		}
	}
}

func (r *Registry) setFilters(ctx context.Context, pool string, tokens []string) error {
	js, stream := r.c.js, r.c.names.calls()
	want := make([]string, len(tokens))
	for i, token := range tokens {
		want[i] = r.c.names.call(token)
	}
	slices.Sort(want)
	consumer, err := js.Consumer(ctx, stream, poolDurable(pool))
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		if len(want) == 0 {
			return nil
		}
		// A new consumer begins with the oldest message: nothing is missed.
		_, err = js.CreateConsumer(ctx, stream, r.c.poolConfig(pool, want))
		if errors.Is(err, jetstream.ErrConsumerExists) {
			return errRaced
		}
		return r.poolError(pool, err)
	case err != nil:
		return err
	case len(want) == 0: // a consumer without a filter would take every call
		err := js.DeleteConsumer(ctx, stream, poolDurable(pool))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil
		}
		return err
	}
	have := filtersOf(consumer.CachedInfo().Config)
	if slices.Equal(have, want) {
		return r.rescue(ctx) // what an earlier try left, normally nothing
	}
	added := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(have, s) })
	before, err := r.lastSequence(ctx)
	if err != nil {
		return err
	}
	if _, err := js.UpdateConsumer(ctx, stream, r.c.poolConfig(pool, want)); err != nil {
		return r.poolError(pool, err)
	}
	for _, subject := range added {
		r.passed[subject] = before
	}
	return r.rescue(ctx)
}

func filtersOf(cfg jetstream.ConsumerConfig) []string {
	filters := slices.Clone(cfg.FilterSubjects)
	if cfg.FilterSubject != "" {
		filters = append(filters, cfg.FilterSubject)
	}
	slices.Sort(filters)
	return filters
}

func (r *Registry) poolError(pool string, err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == 10100 || api.ErrorCode == 10099) {
		return fmt.Errorf("a consumer other than %s still takes one of its functions; it is freed at the next check: %w", poolDurable(pool), err)
	}
	return err
}

func (r *Registry) lastSequence(ctx context.Context) (uint64, error) {
	stream, err := r.c.js.Stream(ctx, r.c.names.calls())
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// rescue republishes the calls that were waiting on subjects when a consumer that
// already existed began to take them: a consumer's cursor never goes back, so it
// would not hand them out. Normally there are none, because calls are published
// only for functions whose consumer takes them (ADR 0003).
func (r *Registry) rescue(ctx context.Context) error {
	for subject, upTo := range r.passed {
		moved, err := r.moveAll(ctx, subject, upTo)
		if moved > 0 {
			r.repaired(RepairMovedCall, moved)
			r.c.log.Warn("moved waiting calls to a consumer that had passed them", "subject", subject, "calls", moved)
		}
		if err != nil {
			return err
		}
		delete(r.passed, subject)
	}
	return nil
}

func (r *Registry) moveAll(ctx context.Context, subject string, upTo uint64) (moved int, err error) {
	stream, err := r.c.js.Stream(ctx, r.c.names.calls())
	if err != nil {
		return 0, err
	}
	for seq := uint64(1); ; moved++ {
		raw, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return moved, nil
		}
		if err != nil || raw.Sequence > upTo {
			return moved, err
		}
		if err := r.move(ctx, stream, raw); err != nil {
			return moved, err
		}
		seq = raw.Sequence + 1
	}
}

// move publishes a copy under an id of its own and deletes the original. Several
// dispatchers that do so at once make one copy.
func (r *Registry) move(ctx context.Context, stream jetstream.Stream, raw *jetstream.RawStreamMsg) error {
	header := nats.Header{}
	maps.Copy(header, raw.Header)
	header[headerMessageID] = []string{fmt.Sprintf("%s.moved.%d", raw.Header.Get(headerMessageID), raw.Sequence)}
	if _, err := r.c.js.PublishMsg(ctx, &nats.Msg{Subject: raw.Subject, Header: header, Data: raw.Data}); err != nil {
		return err
	}
	_, err := deleteMessage(ctx, stream, raw.Sequence) // perhaps another dispatcher did
	return err
}

// checkPools repairs, now and then, what an accident or a dispatcher's end in the
// middle of a change has left wrong.
func (r *Registry) checkPools(ctx context.Context) {
	failed := false
	for sleep(ctx, r.c.cfg.RegistryCheck) == nil {
		r.presence.prune()
		var errs []error
		for _, pool := range r.pools() {
			errs = append(errs, r.checkPool(ctx, pool))
		}
		errs = append(errs, r.sweepCalls(ctx), r.sweepResults(ctx))
		err := errors.Join(errs...)
		if err != nil && !failed && ctx.Err() == nil {
			r.c.log.Warn("cannot check the pools and the two queues", "error", err)
		}
		failed = err != nil
	}
}

func (r *Registry) checkPool(ctx context.Context, pool string) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	r.deciding.Lock()
	defer r.deciding.Unlock()
	if err := r.applyPool(ctx, pool); err != nil {
		return fmt.Errorf("pool %s: %w", pool, err)
	}
	return nil
}
