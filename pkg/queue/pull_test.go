package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestPullGivesCallsAsTheyArrive(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	arrived := make(chan *Taken)
	ended := make(chan error, 1)
	go func() { ended <- puller.Pull(ctx, 3, func(taken *Taken) { arrived <- taken }) }()
	for n := range 3 {
		requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "f", n, `{}`)}))
		require.NoError(t, (<-arrived).Ack())
	}
	require.NoError(t, <-ended)
}

func TestPullEndsByItself(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	_, puller := i.executor(t, "p", "f")
	start := time.Now()
	require.NoError(t, puller.Pull(testContext(t), 5, func(*Taken) {}))
	require.InDelta(t, pullExpires.Seconds(), time.Since(start).Seconds(), 3)
	require.NoError(t, puller.Pull(testContext(t), 0, nil))
}

func TestACancelledPullLosesNoLease(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	stopped := errors.New("stopped")
	seen := map[call.Key]int{}
	// Cancel at many different moments of a busy pull: whatever was handed out has
	// to reach the executor, and the rest has to stay in the queue.
	const rounds, burst = 20, 30
	for round := range rounds {
		var dispatches []call.Dispatch
		for n := range burst {
			dispatches = append(dispatches, i.dispatch("s", "f", round*burst+n, `{}`))
		}
		pulling, cancel := context.WithCancelCause(ctx)
		published := make(chan []error, 1)
		go func() { published <- i.dispatcher.Publish(ctx, dispatches) }()
		count := 0
		err := puller.Pull(pulling, 200, func(taken *Taken) {
			seen[taken.Dispatch.Key]++
			require.NoError(t, taken.Ack())
			if count++; count == round+1 {
				cancel(stopped)
			}
		})
		require.ErrorIs(t, err, stopped)
		requireNoErrors(t, <-published)
	}
	for len(seen) < rounds*burst {
		require.NoError(t, puller.Pull(ctx, rounds*burst-len(seen), func(taken *Taken) {
			require.Equal(t, 1, taken.Deliveries)
			seen[taken.Dispatch.Key]++
			require.NoError(t, taken.Ack())
		}))
	}
	for key, times := range seen {
		require.Equal(t, 1, times, key)
	}
	info := i.consumer(t, "pool_p")
	require.Zero(t, info.NumRedelivered)
	require.Eventually(t, func() bool { return i.consumer(t, "pool_p").NumAckPending == 0 }, patience, 10*time.Millisecond)
	require.Zero(t, i.consumer(t, "pool_p").NumWaiting, "no pull stays behind")
}

func TestALeaseThatRunsOutShowsInTheCount(t *testing.T) {
	t.Parallel()
	i := install(t, Config{AckWait: time.Second})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "f", 1, `{}`)}))
	var first *Taken
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { first = taken }))
	require.Equal(t, 1, first.Deliveries)
	// Renewed, it stays; then it is left alone.
	for range 5 {
		require.NoError(t, first.InProgress())
		bounded, cancel := context.WithTimeout(ctx, 400*time.Millisecond)
		require.ErrorIs(t, puller.Pull(bounded, 1, func(*Taken) { t.Error("delivered in spite of the lease") }), context.DeadlineExceeded)
		cancel()
	}
	var second *Taken
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { second = taken }))
	require.Equal(t, 2, second.Deliveries)
	require.NoError(t, second.Ack())
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 0 }, patience, 10*time.Millisecond)
}

func TestAnUnusableMessageIsEndedByTerm(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	_, err := i.dispatcher.js.Publish(ctx, "fn.call.f", []byte("not a call"))
	require.NoError(t, err)
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) {
		require.ErrorIs(t, taken.Invalid, ErrInvalidCall)
		require.Equal(t, "not a call", string(taken.Body))
		require.NoError(t, taken.Term("not\r\na call"))
	}))
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 0 }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return i.messages(t, "FN_ADVISORY") == 1 }, patience, 10*time.Millisecond)
}

func TestNothingIsLostWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	i := install(t, Config{AckWait: 3 * time.Second})
	ctx := testContext(t)
	executor, puller := i.executor(t, "p", "f")
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); answer(running, executor, puller) }()
	t.Cleanup(func() { stop(); <-done })
	collected := i.collect(t)
	const turns, parallel = 60, 10
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for turn := range turns {
			var dispatches []call.Dispatch
			for n := range parallel {
				dispatches = append(dispatches, i.dispatch(fmt.Sprintf("sess_%d", turn), "f", n, `{}`))
			}
			for _, err := range i.dispatcher.Publish(ctx, dispatches) {
				if err != nil && !errors.Is(err, ErrGone) { // the server was killed before it said so, and the call was quick
					t.Errorf("publish: %v", err)
				}
			}
			_ = sleep(ctx, 20*time.Millisecond) // so that the kills fall between and into turns
		}
	})
	for range 2 {
		_ = sleep(ctx, 300*time.Millisecond)
		i.server.Kill()
		i.server.Start()
	}
	publishing.Wait()
	require.Eventually(t, func() bool { return collected.count() == turns*parallel }, time.Minute, 20*time.Millisecond)
	require.Empty(t, collected.invalid)
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 0 && i.messages(t, "FN_RESULTS") == 0 }, time.Minute, 20*time.Millisecond)
}

func TestAFrozenServerInterruptsAPullSoon(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	pulling := make(chan error, 1)
	started := make(chan struct{})
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "f", 1, `{}`)}))
	go func() {
		pulling <- puller.Pull(ctx, 5, func(taken *Taken) { _ = taken.Ack(); close(started) })
	}()
	<-started
	i.server.Pause()
	start := time.Now()
	err := <-pulling
	require.ErrorIs(t, err, ErrInterrupted)
	require.Less(t, time.Since(start), 9*time.Second)
	i.server.Resume()
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "f", 2, `{}`)}))
	got := 0
	for got == 0 {
		err := puller.Pull(ctx, 1, func(taken *Taken) { got++; _ = taken.Ack() })
		if err != nil {
			require.ErrorIs(t, err, ErrInterrupted)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	executor := connect(t, Config{URL: i.server.URL()})
	d := i.dispatch("s", "get weather", 1, `{}`)
	bounded, cancel := context.WithTimeout(testContext(t), 300*time.Millisecond)
	defer cancel()
	_, err := executor.Lookup(bounded, d)
	require.ErrorIs(t, err, ErrNoDispatcher)

	var mu sync.Mutex
	failures := 2
	require.NoError(t, i.dispatcher.ServeOutcomes(serving(t), func(_ context.Context, q call.Question) (call.Standing, error) {
		mu.Lock()
		defer mu.Unlock()
		if failures--; failures >= 0 {
			return "", errors.New("the store is away")
		}
		if q.Key != d.Key || q.Nonce != d.Nonce || q.Token != call.Token(d.Function) {
			return call.StandingUnknown, nil
		}
		return call.StandingCancelled, nil
	}))
	standing, err := executor.Lookup(testContext(t), d)
	require.NoError(t, err)
	require.Equal(t, call.StandingCancelled, standing)
	standing, err = executor.Lookup(testContext(t), i.dispatch("s", "get weather", 2, `{}`))
	require.NoError(t, err)
	require.Equal(t, call.StandingUnknown, standing)
	reply, err := executor.request(testContext(t), "fn.outcome.f", []byte(`{"session_id":"s"}`))
	require.NoError(t, err)
	require.Contains(t, string(reply), "missing")
}

func TestCancellationsReachTheFunctionsExecutors(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	executor := connect(t, Config{URL: i.server.URL()})
	type cancelled struct {
		key    call.Key
		reason string
	}
	heard := make(chan cancelled, 4)
	stop, err := executor.OnCancel([]string{"f", "a b"}, func(k call.Key, reason string) { heard <- cancelled{k, reason} })
	require.NoError(t, err)
	require.NoError(t, executor.nc.Flush())
	key := call.Key{Session: "s\"1", Turn: "t", Call: "c"}
	require.NoError(t, i.dispatcher.nc.Publish("fn.cancel.f", []byte("rubbish")))
	require.NoError(t, i.dispatcher.Cancel(t.Context(), key, "other", "x"))
	require.NoError(t, i.dispatcher.Cancel(t.Context(), key, "a b", "the turn\nended"))
	require.Equal(t, cancelled{key, "the turn\nended"}, <-heard)
	require.ErrorIs(t, i.dispatcher.Cancel(t.Context(), key, "", ""), ErrInvalidFunction)
	stop()
	stop()
	_, err = executor.OnCancel([]string{"f", ""}, nil)
	require.ErrorIs(t, err, ErrInvalidFunction)
}

func TestLargeCallsComeInSeveralPulls(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	arguments := `"` + strings.Repeat("x", 3<<20) + `"`
	const calls = 12
	for n := range calls {
		requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "f", n, arguments)}))
	}
	got, pulls := 0, 0
	for ; got < calls; pulls++ {
		require.NoError(t, puller.Pull(ctx, calls-got, func(taken *Taken) {
			requireSame(t, arguments, taken.Dispatch.Arguments)
			require.NoError(t, taken.Ack())
			got++
		}))
	}
	require.Greater(t, pulls, 1)
	require.Less(t, pulls, calls)
}
