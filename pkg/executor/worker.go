package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

const (
	// defaultRefresh is how often to register again when the binding does not say.
	defaultRefresh = 30 * time.Second
	// rebindPause is the least time between two registrations.
	rebindPause = time.Second
	// reportGrace is how long outcomes may still be reported after the hard stop.
	reportGrace = 5 * time.Second
	// The delays after a pull that failed, doubling.
	pullRetryFirst, pullRetryLast = 100 * time.Millisecond, 5 * time.Second
)

// worker is one Run of an executor over a link.
type worker struct {
	ex        *Executor
	link      link
	log       *slog.Logger
	functions []call.Function

	slots    *slots
	leases   *leases
	inflight *inflight

	soft      context.Context // ends at the soft stop
	hard      context.Context // ends at the hard stop; parent of the handlers' contexts
	reporting context.Context // ends reportGrace after the hard stop

	bound     atomic.Pointer[binding]
	rebind    chan struct{} // asks for a new registration
	failures  atomic.Int64  // pulls that failed in a row
	pulls     sync.WaitGroup
	calls     sync.WaitGroup
	abandoned atomic.Int64
}

// serve registers, runs calls until ctx ends, and stops in order.
func (ex *Executor) serve(ctx context.Context, l link) error {
	hard, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	reporting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	w := &worker{
		ex: ex, link: l, log: ex.cfg.Logger.With("pool", ex.cfg.Pool), functions: ex.Functions(),
		slots: newSlots(ex.cfg.Concurrency), leases: newLeases(ex.cfg.Logger), inflight: newInflight(),
		soft: ctx, hard: hard, reporting: reporting, rebind: make(chan struct{}, 1),
	}
	if err := w.register(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before anything began
		}
		return fmt.Errorf("register the functions of pool %q: %w", ex.cfg.Pool, err)
	}
	forget, err := l.OnCancel(w.functions, w.cancelled)
	if err != nil {
		return fmt.Errorf("listen for cancel notices: %w", err)
	}
	defer forget()
	ex.serving(l)
	defer ex.serving(nil)
	w.log.Info("executor serves", "functions", len(w.functions), "concurrency", ex.cfg.Concurrency, "executor_id", ex.cfg.ID)

	var background sync.WaitGroup
	defer background.Wait()
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBeating() // leases are extended until the last call is settled
	background.Go(func() { w.leases.run(beating) })
	background.Go(func() { w.keepRegistered(ctx) })
	w.pulls.Go(func() { w.pullLoop(ctx) })

	<-ctx.Done()
	return w.stop(interrupt, giveUp)
}

// stop waits for the calls in hand, interrupts them after StopTimeout, and returns
// when all are settled or given up.
func (w *worker) stop(interrupt context.CancelCauseFunc, giveUp context.CancelFunc) error {
	w.log.Info("executor stops", "stop_timeout", w.ex.cfg.StopTimeout)
	settled := make(chan struct{})
	go func() {
		w.pulls.Wait()
		w.calls.Wait()
		close(settled)
	}()
	if !closesWithin(settled, w.ex.cfg.StopTimeout) {
		w.log.Warn("stop timeout is over; running handlers are interrupted")
		interrupt(ErrStopped)
		if !closesWithin(settled, returnGrace+reportGrace) {
			giveUp()
			<-settled
		}
	}
	if n := w.abandoned.Load(); n > 0 {
		return fmt.Errorf("%d %w", n, ErrHandlersLeft)
	}
	return nil
}

func closesWithin(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

func (w *worker) register(ctx context.Context) error {
	b, err := w.link.Register(ctx, w.functions)
	if err != nil {
		return err
	}
	w.bound.Store(&b)
	w.leases.setAckWait(b.ackWait)
	return nil
}

// keepRegistered registers again as often as the binding says, and when pulls fail.
func (w *worker) keepRegistered(ctx context.Context) {
	for {
		refresh := w.bound.Load().refresh
		if refresh <= 0 {
			refresh = defaultRefresh
		}
		refresh = time.Duration(float64(refresh) * (0.9 + 0.2*rand.Float64()))
		select {
		case <-ctx.Done():
			return
		case <-w.rebind:
		case <-time.After(refresh):
		}
		if err := w.register(ctx); err != nil && ctx.Err() == nil {
			w.log.Error("functions could not be registered again; the earlier registration is used on", "error", err)
		}
		pause(ctx, rebindPause)
	}
}

// pullLoop pulls calls into free slots. Several pulls may be under way; each owns
// the slots it asked for.
func (w *worker) pullLoop(ctx context.Context) {
	for {
		n := w.slots.gather(ctx)
		if n == 0 {
			return
		}
		w.pulls.Go(func() { w.pull(ctx, n) })
	}
}

func (w *worker) pull(ctx context.Context, n int) {
	got := 0
	err := w.bound.Load().puller.Pull(ctx, n, func(t taken) {
		got++
		w.calls.Go(func() {
			defer w.slots.release(1)
			w.handle(t)
		})
	})
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errPullAgain): // the connection came and went; the pull paces itself
		w.registerSoon()
	case err != nil:
		w.pullFailed(ctx, err)
	case w.failures.Swap(0) > 0:
		w.log.Info("calls are pulled again")
	}
	w.slots.release(max(n-got, 0))
}

// pullFailed waits, longer with every failure in a row, and has the functions
// registered again: the consumer may be gone.
func (w *worker) pullFailed(ctx context.Context, err error) {
	n := w.failures.Add(1)
	if n == 1 {
		w.log.Warn("calls cannot be pulled; trying on", "error", err)
	}
	w.registerSoon()
	select {
	case <-ctx.Done():
	case <-time.After(min(pullRetryFirst<<min(n-1, 10), pullRetryLast)):
	}
}

// registerSoon has the functions registered again without waiting for the refresh.
func (w *worker) registerSoon() {
	select {
	case w.rebind <- struct{}{}:
	default:
	}
}

func (w *worker) cancelled(k call.Key, reason string) {
	if w.inflight.cancel(k) {
		w.log.Info("call cancelled", "session_id", k.Session, "turn_id", k.Turn, "call_id", k.Call, "reason", reason)
	}
}
