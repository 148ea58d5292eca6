package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
)

// Dispatcher serves the sessions of the partitions that it owns.
type Dispatcher struct {
	cfg       Config
	api       API
	queue     Queue
	store     Store
	functions Functions
	source    Source
	arguments Arguments
	files     func(session string) bool
	nonces    call.Nonces
	log       *slog.Logger
	obs       Observer

	mu         sync.Mutex
	partitions map[int]*partition
	handOvers  sync.WaitGroup
	// looks bounds the look-ups of outcomes of calls that were found claimed.
	looks chan struct{}
	// parked counts the parked calls of the sessions that are served.
	parked atomic.Int64
}

// Parts are what a dispatcher works with. Source may be nil: sessions are then
// only looked at by the watchdog and by Nudge. So may Arguments: executors alone
// check them then.
type Parts struct {
	API       API
	Queue     Queue
	Store     Store
	Functions Functions
	Source    Source
	Arguments Arguments
	// Files says for which sessions outputs may have parts of type input_file; nil means
	// for none.
	Files func(session string) bool
}

// New checks the configuration; Run starts the work.
func New(cfg Config, parts Parts) (*Dispatcher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("dispatcher: %w", err)
	}
	if parts.API == nil || parts.Queue == nil || parts.Store == nil || parts.Functions == nil {
		return nil, errors.New("dispatcher: API, Queue, Store and Functions are required")
	}
	if parts.Source == nil {
		parts.Source = noSource{}
	}
	return &Dispatcher{
		cfg: cfg, api: parts.API, queue: parts.Queue, store: parts.Store,
		functions: parts.Functions, source: parts.Source, arguments: parts.Arguments, files: parts.Files,
		looks:  make(chan struct{}, maxLooks),
		nonces: call.NewNonces(cfg.Secret), log: cfg.Logger, obs: cfg.Observer,
		partitions: map[int]*partition{},
	}, nil
}

// Run owns partitions and serves their sessions until ctx ends, then stops
// gracefully: submissions under way are finished within StopTimeout and the
// partitions are released, so that another replica goes on at once.
func (d *Dispatcher) Run(ctx context.Context) error {
	var sweeping sync.WaitGroup
	sweeping.Go(func() { d.sweep(ctx) })
	d.own(ctx)
	sweeping.Wait()
	return nil
}

// Attach adds sessions to those that the installation watches. It returns once
// the store has them; the owner of each starts within AttachPoll.
func (d *Dispatcher) Attach(ctx context.Context, ids ...string) error {
	if slices.Contains(ids, "") {
		return errors.New("a session id is empty")
	}
	if err := d.store.Attach(ctx, ids...); err != nil {
		return err
	}
	d.repoll(ids)
	return nil
}

// Detach stops watching sessions. Calls that were claimed are still answered; new
// ones are left alone.
func (d *Dispatcher) Detach(ctx context.Context, ids ...string) error {
	if err := d.store.Detach(ctx, ids...); err != nil {
		return err
	}
	d.repoll(ids)
	return nil
}

// repoll makes this replica's owners of the sessions look at the list at once.
func (d *Dispatcher) repoll(ids []string) {
	for _, id := range ids {
		if p := d.partition(call.Partition(id, d.cfg.Partitions)); p != nil {
			signal(p.attachedChanged)
		}
	}
}

// Nudge asks to look at a session now. It does nothing when another replica owns
// the session or nobody watches it.
func (d *Dispatcher) Nudge(id, trigger string) {
	if p := d.partition(call.Partition(id, d.cfg.Partitions)); p != nil {
		if s := p.lookup(id); s != nil {
			s.nudge(trigger)
		}
	}
}

// Serves says whether this replica serves the session: it owns its partition, and the
// session is watched or has open calls.
func (d *Dispatcher) Serves(id string) bool {
	p := d.partition(call.Partition(id, d.cfg.Partitions))
	return p != nil && p.lookup(id) != nil
}

// Standing answers an executor that asks about a call before running it again.
func (d *Dispatcher) Standing(ctx context.Context, q call.Question) (call.Standing, error) {
	recs, err := d.store.Get(ctx, []call.Key{q.Key})
	if err != nil {
		return "", err
	}
	rec := recs[0]
	attempt, genuine := d.nonces.Check(q.Key, q.Token, q.Nonce)
	if rec.State.Standing() != call.StandingPending || !genuine {
		return rec.State.Standing(), nil
	}
	switch {
	case attempt < rec.Attempt, attempt == rec.Attempt && rec.State == call.Retrying:
		return call.StandingAnswered, nil // it failed for a technical reason: another attempt follows
	case attempt == rec.Attempt && q.Handover > 0 && q.Handover < rec.Handover:
		return call.StandingAnswered, nil // it was given back, or lost sight of: another hand-over follows
	}
	return call.StandingPending, nil
}

// SessionInfo describes a session that this replica serves.
type SessionInfo struct {
	ID        string `json:"id"`
	Partition int    `json:"partition"`
	Watched   bool   `json:"watched"`
	Status    string `json:"status"`
	Open      int    `json:"open_calls"`
	// Parked calls wait for an operator; they are not among the open ones.
	Parked    int       `json:"parked_calls"`
	Saved     int       `json:"saved_results"`
	Retrieved time.Time `json:"retrieved_at"`
	// Trouble is the latest unresolved error, empty when all is well.
	Trouble string `json:"trouble,omitempty"`
	// Drift names the functions whose tools in the session differ from what is
	// registered.
	Drift []string `json:"drift,omitempty"`
}

// Sessions describes the sessions that this replica serves now.
func (d *Dispatcher) Sessions() []SessionInfo {
	var infos []SessionInfo
	for _, p := range d.ownedPartitions() {
		infos = append(infos, p.infos()...)
	}
	return infos
}

// Parked is the number of parked calls in the sessions that this replica serves now.
func (d *Dispatcher) Parked() int { return int(d.parked.Load()) }

// Owned is the number of partitions that this replica owns now.
func (d *Dispatcher) Owned() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.partitions)
}

// Owns says whether this replica owns partition n now. Work of which one replica
// is enough, such as polling the session list, goes to the owner of partition 0.
func (d *Dispatcher) Owns(n int) bool { return d.partition(n) != nil }

func (d *Dispatcher) ownedPartitions() []*partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.partitions))
}

func (d *Dispatcher) partition(n int) *partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.partitions[n]
}

// signal wakes the reader of a channel of capacity one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// delays is an endless exponential backoff with jitter.
func delays(initial, limit time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(initial), backoff.WithMaxInterval(limit),
		backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.2), backoff.WithMaxElapsedTime(0))
}
