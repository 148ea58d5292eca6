package property_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
)

// replica is a dispatcher behind its gate.
type replica struct {
	name string
	gate *gate
	d    *dispatcher.Dispatcher
	stop context.CancelFunc
}

// start starts dispatcher n, unless it runs.
func (w *world) start(n int) {
	if w.replicas[n] != nil {
		return
	}
	w.starts++
	r := &replica{name: fmt.Sprintf("d%d-%d", n, w.starts), gate: newGate()}
	cfg := dispatcher.Config{
		Name: r.name, Partitions: partitions, Secret: []byte("0123456789abcdef"),
		LeaseTTL: 400 * time.Millisecond, AttachPoll: 50 * time.Millisecond, Watchdog: 200 * time.Millisecond, Sweep: 500 * time.Millisecond,
		Linger: 5 * time.Millisecond, Resend: 250 * time.Millisecond,
		DuplicateWindow: duplicateWindow, OutcomeLease: outcomeLease,
		UnknownAfter: 800 * time.Millisecond, DeferredTimeout: 5 * time.Second, StopTimeout: 400 * time.Millisecond,
		Logger: w.logger(r.name), Observer: observer{w.check},
	}
	var err error
	r.d, err = dispatcher.New(cfg, dispatcher.Parts{
		API: gatedAPI{r.gate, w.api}, Queue: gatedQueue{w.queue, r.gate}, Store: gatedStore{w.store, r.gate}, Functions: w.functions,
	})
	if err != nil {
		panic(err) // the configuration above is not valid
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	w.stopping.Go(func() { _ = r.d.Run(ctx) })
	w.replicas[n] = r
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive = append(w.alive, r)
}

// kill ends dispatcher n without grace.
func (w *world) kill(n int) {
	if r := w.replicas[n]; r != nil {
		r.gate.kill()
		w.end(n)
	}
}

// end has dispatcher n stop in order.
func (w *world) end(n int) {
	r := w.replicas[n]
	if r == nil {
		return
	}
	w.replicas[n] = nil
	w.mu.Lock()
	w.alive = slices.DeleteFunc(w.alive, func(other *replica) bool { return other == r })
	w.mu.Unlock()
	r.stop()
}

func (r *replica) standing(ctx context.Context, q call.Question) (call.Standing, error) {
	return through(ctx, r.gate, func() (call.Standing, error) { return r.d.Standing(ctx, q) })
}

// observer shows the checks every transition.
type observer struct{ check *checks }

func (o observer) Transition(t dispatcher.Transition)    { o.check.transition(t) }
func (o observer) Request(string, string, time.Duration) {}
func (o observer) Batch(int, int)                        {}
func (o observer) Count(event string)                    { o.check.w.trace("event %s", event) }
func (o observer) Owned(int, int)                        {}

// registry knows the functions, the last one only after a while.
type registry struct {
	mu      sync.Mutex
	known   map[string]call.Function
	changed chan struct{}
}

func newRegistry() *registry {
	r := &registry{known: declared(), changed: make(chan struct{})}
	delete(r.known, later)
	return r
}

// complete registers the last function.
func (r *registry) complete() {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.known, declared())
	close(r.changed)
	r.changed = make(chan struct{})
}

// Function is the definition of a registered function.
func (r *registry) Function(name string) (call.Function, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.known[name]
	return f, ok
}

// Changed is closed at the next registration.
func (r *registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func (r *registry) verifies(name string) bool {
	f, _ := r.Function(name)
	return f.Verifies
}
