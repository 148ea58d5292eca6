package executor

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestCallIsRunReportedAndAcked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.on("f", func(context.Context) error { return nil })
		b.start()
		b.q.publish(dispatch("f", 1))
		synctest.Wait()
		require.Equal(t, "done", textOf(t, b.outcome()))
		require.Equal(t, 0, b.q.left())
		require.NoError(t, b.end())
		require.Equal(t, []Finish{{Function: "f", Kind: call.Success, Reason: "handler", Ran: true}}, b.seen.finished)
	})
}

func TestOnlyFreeSlotsArePulled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{Concurrency: 20})
		var running, most atomic.Int64
		b.on("f", func(context.Context) error {
			n := running.Add(1)
			most.Store(max(most.Load(), n))
			<-time.After(100 * time.Millisecond)
			running.Add(-1)
			return nil
		})
		b.start()
		for n := range 60 {
			b.q.publish(dispatch("f", n))
		}
		pass(50 * time.Millisecond)
		require.EqualValues(t, 20, running.Load())
		require.Equal(t, []int{20}, b.q.pulled())
		pass(time.Second)
		require.EqualValues(t, 20, most.Load())
		require.Len(t, b.q.reported(), 60)
		require.GreaterOrEqual(t, b.q.pulled()[1], 16, "freed slots are pulled together")
		require.NoError(t, b.end())
	})
}

func TestIdleSlotWaitsAMillisecondAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(64)
		require.Equal(t, 64, s.gather(t.Context()))
		began := time.Now()
		s.release(3)
		require.Equal(t, 3, s.gather(t.Context()))
		require.LessOrEqual(t, time.Since(began), time.Millisecond)
		s.release(16)
		began = time.Now()
		require.Equal(t, 16, s.gather(t.Context()))
		require.Zero(t, time.Since(began))
	})
}

func TestPanicAndGoexitAreFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad := func(next Handler) Handler {
			return func(ctx context.Context, c Call) (Output, error) {
				if c.Function == "middleware" {
					panic("in middleware")
				}
				return next(ctx, c)
			}
		}
		b := newBundle(t, Config{Middleware: []Middleware{bad}})
		b.on("panics", func(context.Context) error { panic("secret 42") })
		b.on("exits", func(context.Context) error { runtime.Goexit(); return nil })
		b.on("middleware", func(context.Context) error { return nil })
		b.start()
		b.q.publish(dispatch("panics", 1), dispatch("exits", 2), dispatch("middleware", 3))
		synctest.Wait()
		require.Len(t, b.q.reported(), 3)
		for _, o := range b.q.reported() {
			require.Equal(t, "function crashed", o.Error)
			require.Equal(t, call.ReasonPanic, o.Cause)
		}
		require.Contains(t, b.logs.String(), "secret 42")
		require.Contains(t, b.logs.String(), "run_test.go")
		require.NoError(t, b.end())
	})
}

func TestCancelNoticeEndsTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		var cause error
		b.on("f", func(ctx context.Context) error { <-ctx.Done(); cause = context.Cause(ctx); return ctx.Err() })
		b.start()
		d := dispatch("f", 1)
		b.q.publish(d)
		synctest.Wait()
		b.q.cancel(dispatch("f", 2).Key)
		synctest.Wait()
		require.NoError(t, cause)
		b.q.cancel(d.Key)
		synctest.Wait()
		require.ErrorIs(t, cause, ErrCancelled)
		require.Empty(t, b.q.reported())
		require.Equal(t, 0, b.q.left())
		require.Equal(t, []string{"cancelled"}, b.seen.reasons())
		require.NoError(t, b.end())
	})
}

func TestStopFinishesRunningAndReleasesUnstarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{Concurrency: 4})
		b.on("f", func(context.Context) error { <-time.After(time.Second); return nil }, WithEffects(call.EffectsNone))
		b.q.lookup = func(call.Dispatch) (call.Standing, error) { return "", errors.New("nobody") }
		b.start()
		unstarted := dispatch("f", 2)
		unstarted.Uncertain = true // waits for a lookup
		b.q.publish(dispatch("f", 1), unstarted)
		pass(500 * time.Millisecond)
		b.stop()
		synctest.Wait()
		require.Equal(t, call.Released, b.outcome().Kind)
		require.NoError(t, b.end())
		require.Len(t, b.q.reported(), 2)
		require.Equal(t, "done", textOf(t, b.q.reported()[1]))
		require.Equal(t, 0, b.q.left())
	})
}

func TestHardStopInterruptsHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{StopTimeout: 2 * time.Second})
		var causes sync.Map
		wait := func(name string) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				<-ctx.Done()
				causes.Store(name, context.Cause(ctx))
				return ctx.Err()
			}
		}
		b.on("reads", wait("reads"), WithEffects(call.EffectsNone))
		b.on("writes", wait("writes"))
		b.on("finishes", func(ctx context.Context) error { <-ctx.Done(); return nil })
		release := make(chan struct{})
		defer close(release)
		b.on("never", func(context.Context) error { <-release; return nil })
		b.start()
		b.q.publish(dispatch("reads", 1), dispatch("writes", 2), dispatch("finishes", 3), dispatch("never", 4))
		synctest.Wait()
		began := time.Now()
		require.ErrorIs(t, b.end(), ErrHandlersLeft)
		require.Less(t, time.Since(began), 5*time.Second)
		got := make(map[string]call.Outcome)
		for _, o := range b.q.reported() {
			got[o.Key.Call] = o
		}
		require.Equal(t, call.Released, got["call_1"].Kind)
		require.Equal(t, call.ReasonUnknownOutcome, got["call_2"].Cause)
		require.Equal(t, "done", textOf(t, got["call_3"]))
		require.Equal(t, call.ReasonUnknownOutcome, got["call_4"].Cause)
		for _, name := range []string{"reads", "writes"} {
			cause, _ := causes.Load(name)
			require.ErrorIs(t, cause.(error), ErrStopped)
		}
	})
}

func TestRegistrationIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.on("f", func(context.Context) error { return nil })
		b.start()
		pass(100 * time.Second)
		require.GreaterOrEqual(t, b.q.registrations, 3)
		require.LessOrEqual(t, b.q.registrations, 5)
		require.NoError(t, b.end())
	})
}

func TestFailingPullsAreRetriedCalmlyAndRegisterAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		var down atomic.Bool
		down.Store(true)
		b.q.pullErr = func() error {
			if down.Load() {
				return errors.New("consumer is gone")
			}
			return nil
		}
		b.on("f", func(context.Context) error { return nil })
		b.start()
		pass(20 * time.Second)
		require.Less(t, len(b.q.pulled()), 15)
		require.Greater(t, b.q.registrations, 1)
		down.Store(false)
		b.q.publish(dispatch("f", 1))
		pass(10 * time.Second)
		require.Equal(t, "done", textOf(t, b.outcome()))
		require.NoError(t, b.end())
	})
}

func TestRefusedRegistrationEndsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.q.registerErr = errors.New("function f belongs to pool other")
		b.on("f", func(context.Context) error { return nil })
		b.start()
		require.ErrorContains(t, <-b.err, `register the functions of pool "tools": function f belongs to pool other`)
		b.stop()
	})
}
