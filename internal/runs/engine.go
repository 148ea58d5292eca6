package runs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
)

// Prefix begins the ids of runs, and of nothing else that a dispatcher serves.
const Prefix = "run_"

// IsRun says whether a session id is that of a run.
func IsRun(id string) bool { return strings.HasPrefix(id, Prefix) }

// Config sets an engine up. Every zero field but Name has a working default.
type Config struct {
	// Name is this replica's name among the dispatchers. Required.
	Name string
	// Partitions is the installation's number of partitions. Defaults to 64.
	Partitions int
	// Attempts is how often a response that the API failed is asked for. Defaults to 3.
	Attempts int
	// Poll is the longest wait between looks at a response that is not streamed. Defaults
	// to 10 s.
	Poll time.Duration
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Parts are what an engine works with. Notices and Observer may be nil.
type Parts struct {
	Store     Store
	Model     Model
	Functions Functions
	Notices   Notices
	Observer  Observer
}

// Engine drives the runs of the partitions that this replica owns.
type Engine struct {
	cfg   Config
	parts Parts
	log   *slog.Logger

	mu      sync.Mutex
	active  map[string]bool
	runners map[string]*runner
	changed chan struct{}
}

type noNotices struct{}

func (noNotices) Tell(Notice) {}

// New makes an engine; Run starts the work.
func New(cfg Config, parts Parts) *Engine {
	if cfg.Partitions == 0 {
		cfg.Partitions = 64
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 3
	}
	if cfg.Poll == 0 {
		cfg.Poll = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if parts.Notices == nil {
		parts.Notices = noNotices{}
	}
	if parts.Observer == nil {
		parts.Observer = noObserver{}
	}
	return &Engine{
		cfg: cfg, parts: parts, log: cfg.Logger,
		active: map[string]bool{}, runners: map[string]*runner{}, changed: make(chan struct{}, 1),
	}
}

// ErrConflict is returned by Start for a key under which another run was started.
var ErrConflict = errors.New("another run was started under this key")

// Start records a run, which the owner of its partition takes up. With a key, starting the
// same run again gives the one that there is. Errors about the request wrap
// ErrInvalidRequest; any other leaves open whether the run was recorded.
func (e *Engine) Start(ctx context.Context, body json.RawMessage, key string) (Run, error) {
	request, err := ParseRequest(body)
	if err != nil {
		return Run{}, err
	}
	id := Prefix + strings.ToLower(rand.Text())
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		id = Prefix + base64.RawURLEncoding.EncodeToString(sum[:18])
		if run, err := e.earlier(ctx, id, body); !errors.Is(err, ErrNotFound) {
			return run, err
		}
	}
	tools, err := request.resolve(e.parts.Functions)
	if err != nil {
		return Run{}, err
	}
	if _, err := request.compose(material{run: id, round: 1, tools: tools}); err != nil {
		return Run{}, err
	}
	if _, err := e.parts.Store.PutTools(ctx, id, tools); err != nil {
		return Run{}, err
	}
	now := time.Now().UTC()
	run := Run{
		ID: id, Status: Queued, Model: request.model, Bounds: request.bounds,
		Created: now, Changed: now, Deadline: now.Add(time.Duration(request.bounds.Time)), Rounds: []Round{},
	}
	err = e.parts.Store.Create(ctx, run, body)
	if errors.Is(err, ErrExists) && key != "" {
		return e.earlier(ctx, id, body)
	}
	if err == nil {
		e.parts.Notices.Tell(Notice{Type: NoticeCreated, Run: id, Status: Queued})
	}
	return run, err
}

// earlier gives the run that was started under the same key before.
func (e *Engine) earlier(ctx context.Context, id string, body json.RawMessage) (Run, error) {
	run, _, err := e.parts.Store.Load(ctx, id)
	if err != nil {
		return Run{}, err
	}
	request, err := e.parts.Store.Request(ctx, id)
	if err != nil {
		return Run{}, err
	}
	if !bytes.Equal(request, body) {
		return Run{}, ErrConflict
	}
	if run.Status == Queued { // whoever recorded it may have died before it was made active
		return run, e.parts.Store.Nudge(ctx, id)
	}
	return run, nil
}

// Get gives a run's state; ErrNotFound when there is none.
func (e *Engine) Get(ctx context.Context, id string) (Run, error) {
	run, _, err := e.parts.Store.Load(ctx, id)
	return run, err
}

// Cancel asks to end a run; it is not over when Cancel returns. A run that is over stays
// as it is.
func (e *Engine) Cancel(ctx context.Context, id string) (Run, error) {
	run, err := e.Get(ctx, id)
	if err != nil || run.Status.Final() {
		return run, err
	}
	return run, e.parts.Store.Cancel(ctx, id)
}

// Finished has a run look at its response, of which the API said that it has ended. It
// does nothing for a response that no run made.
func (e *Engine) Finished(ctx context.Context, response string) error {
	id, err := e.parts.Store.RunOf(ctx, response)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	run, err := e.Get(ctx, id)
	if err != nil || run.Status.Final() {
		return err
	}
	return e.parts.Store.Nudge(ctx, id)
}

// ownershipPoll is how often the engine looks which partitions the replica owns.
const ownershipPoll = 250 * time.Millisecond

// Run drives the active runs of the dispatcher's partitions until ctx ends. A run that is
// interrupted goes on with the next owner of its partition.
func (e *Engine) Run(ctx context.Context, d Dispatcher) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { e.follow(ctx) })
	tick := time.NewTicker(ownershipPoll)
	defer tick.Stop()
	for {
		e.assign(ctx, d, &work)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-e.changed:
		}
	}
}

// follow keeps the list of active runs.
func (e *Engine) follow(ctx context.Context) {
	waits := delays(250*time.Millisecond, 10*time.Second)
	for ctx.Err() == nil {
		err := e.parts.Store.Active(ctx, func(id string) {
			waits.Reset()
			e.mu.Lock()
			e.active[id] = true
			r := e.runners[id]
			e.mu.Unlock()
			if r != nil {
				signal(r.nudges)
			}
			signal(e.changed)
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		e.log.Warn("the active runs cannot be followed; trying until they can", "error", err)
		pause(ctx, waits.NextBackOff())
	}
}

// assign starts the runs that this replica should drive and stops those that it should
// not drive any more.
func (e *Engine) assign(ctx context.Context, d Dispatcher, work *sync.WaitGroup) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, r := range e.runners {
		if !d.Owns(call.Partition(id, e.cfg.Partitions)) {
			r.cancel()
		}
	}
	for id := range e.active {
		if e.runners[id] != nil || !d.Owns(call.Partition(id, e.cfg.Partitions)) {
			continue
		}
		r := newRunner(ctx, e, d, id)
		e.runners[id] = r
		work.Go(func() {
			over := r.main()
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.runners, id)
			if over {
				delete(e.active, id)
			}
		})
	}
}

func (e *Engine) runner(id string) *runner {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runners[id]
}

// Driven is the number of runs that this replica drives now.
func (e *Engine) Driven() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runners)
}

// signal wakes the reader of a channel of capacity one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// delays is an endless exponential backoff with jitter.
func delays(initial, limit time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(initial), backoff.WithMaxInterval(limit),
		backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.2), backoff.WithMaxElapsedTime(0))
}

// busy says that something has to be asked again later.
func busy(format string, args ...any) *call.Refusal {
	return &call.Refusal{Class: call.RefusedBusy, Err: fmt.Errorf(format, args...)}
}
