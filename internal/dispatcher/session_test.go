package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// bench is a dispatcher of one session in virtual time.
type bench struct {
	api   *fakeAPI
	queue *fakeQueue
	store *memory
	d     *Dispatcher
	// function is what is registered; its name is f.
	function call.Function
	// arguments may be nil.
	arguments Arguments
}

func listedCalls(n int) []call.Call {
	var out []call.Call
	for i := range n {
		out = append(out, call.Call{
			Key: call.Key{Session: "s", Turn: "t", Call: fmt.Sprint("c", i)}, Function: "f", Arguments: []byte(`{}`),
		})
	}
	return out
}

// run runs f beside a dispatcher and stops it.
func (b *bench) run(t *testing.T, cfg Config, f func()) {
	b.function.Name = "f"
	cfg.Name, cfg.Secret, cfg.Partitions = "one", []byte("0123456789abcdef"), 1
	cfg.Logger = slog.New(slog.DiscardHandler)
	var err error
	b.d, err = New(cfg, Parts{API: b.api, Queue: b.queue, Store: b.store, Functions: knows{"f": b.function}, Arguments: b.arguments})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = b.d.Run(ctx) }()
	f()
	cancel()
	<-done
}

func succeed(call.Dispatch) (call.Outcome, bool) {
	return call.Outcome{Kind: call.Success, Output: []byte(`"ok"`)}, true
}

// wait lets d of virtual time pass, after which everything has come to rest. A
// goroutine that spins would never let it.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestSessionAtRestSleeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.run(t, Config{}, func() {
			wait(10 * time.Minute)
			gets, _ := b.api.seen()
			require.InDelta(t, 11, gets, 4, "one look at the start, and one a minute")
		})
	})
}

func TestSessionSleepsWhileASubmissionIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		b := &bench{api: &fakeAPI{calls: listedCalls(3)}, queue: newFakeQueue(succeed), store: newMemory("s")}
		b.api.submit = func(context.Context, call.Batch) error { <-answer; return nil }
		b.run(t, Config{}, func() {
			wait(20 * time.Second)
			_, batches := b.api.seen()
			require.Len(t, batches, 1)
			require.Len(t, batches[0].Answers, 3, "the turn is complete: one submission")
			close(answer)
			wait(time.Second)
			for _, c := range listedCalls(3) {
				require.Equal(t, call.Settled, b.store.state(c.Key))
			}
			require.Equal(t, 3, b.queue.acks)
		})
	})
}

func TestResultsWaitForOthersOfTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(4)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.run(t, Config{Linger: 100 * time.Millisecond}, func() {
			wait(time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 4)
			finish := func(i int) {
				o, _ := succeed(ds[i])
				o.Key, o.Nonce = ds[i].Key, ds[i].Nonce
				b.queue.deliver(ds[i], o)
			}
			finish(0)
			wait(50 * time.Millisecond)
			finish(1)
			_, batches := b.api.seen()
			require.Empty(t, batches)
			wait(60 * time.Millisecond)
			_, batches = b.api.seen()
			require.Len(t, batches, 1, "the first result has waited long enough")
			require.Len(t, batches[0].Answers, 2)
			finish(2)
			finish(3)
			wait(5 * time.Millisecond)
			_, batches = b.api.seen()
			require.Len(t, batches, 2, "the last outstanding result is not kept waiting")
			require.Len(t, batches[1].Answers, 2)
		})
	})
}

func TestNoExecutorIsAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := listedCalls(1)
		calls[0].Function = "nobody"
		b := &bench{api: &fakeAPI{calls: calls}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.run(t, Config{UnknownAfter: 30 * time.Second}, func() {
			wait(29 * time.Second)
			_, batches := b.api.seen()
			require.Empty(t, batches)
			wait(2 * time.Second)
			_, batches = b.api.seen()
			require.Len(t, batches, 1)
			require.Equal(t, "no executor is available for nobody", batches[0].Answers[0].Result.Error)
		})
	})
}

func TestSilenceIsAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.taken = func(call.Dispatch) bool { return true }
		b.run(t, Config{}, func() {
			wait(time.Minute)
			require.Equal(t, call.Queued, b.store.state(listedCalls(1)[0].Key), "what is out for long is on record as such")
			wait(30 * time.Second)
			_, batches := b.api.seen()
			require.Empty(t, batches)
			wait(10 * time.Second)
			_, batches = b.api.seen()
			require.Len(t, batches, 1, "queue timeout, handler timeout and the way back have passed")
			require.Contains(t, batches[0].Answers[0].Result.Error, "it is unknown whether it took effect")
		})
	})
}

func TestTooLargeCallIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.fail = errTooLarge
		b.run(t, Config{}, func() {
			wait(time.Second)
			_, batches := b.api.seen()
			require.Len(t, batches, 1)
			require.Equal(t, call.ReasonTooLarge, batches[0].Answers[0].Result.Reason)
		})
	})
}

func TestVanishedCallIsCancelledAfterASecondLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.run(t, Config{}, func() {
			wait(time.Second)
			key := listedCalls(1)[0].Key
			b.api.mu.Lock()
			b.api.calls = nil
			b.api.mu.Unlock()
			b.d.Nudge("s", "test")
			wait(10 * time.Millisecond)
			b.d.Nudge("s", "another look in between")
			wait(90 * time.Millisecond)
			require.Equal(t, call.Seen, b.store.state(key), "one look may be stale")
			wait(time.Second)
			require.Equal(t, call.Cancelled, b.store.state(key))
			// Its outcome is late: let go, not sent.
			ds := b.queue.dispatches()
			o, _ := succeed(ds[0])
			o.Key, o.Nonce = ds[0].Key, ds[0].Nonce
			b.queue.deliver(ds[0], o)
			wait(time.Second)
			_, batches := b.api.seen()
			require.Empty(t, batches)
			require.Equal(t, 1, b.queue.acks)
		})
	})
}

func TestRefusedKeyIsRetriedWithoutLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(2)}, queue: newFakeQueue(succeed), store: newMemory("s")}
		var refuse atomic.Bool
		refuse.Store(true)
		b.api.submit = func(context.Context, call.Batch) error {
			if refuse.Load() {
				return &call.Refusal{Class: call.RefusedAuth, Status: 401, Err: errors.New("no")}
			}
			return nil
		}
		b.run(t, Config{}, func() {
			wait(2 * time.Minute)
			_, batches := b.api.seen()
			require.InDelta(t, 5, len(batches), 1, "every half minute")
			require.Equal(t, batches[0].IdempotencyKey, batches[1].IdempotencyKey)
			require.Equal(t, "results cannot be submitted", b.d.Sessions()[0].Trouble)
			refuse.Store(false)
			wait(time.Minute)
			require.Equal(t, call.Settled, b.store.state(listedCalls(1)[0].Key))
			require.Empty(t, b.d.Sessions()[0].Trouble)
		})
	})
}

func TestConflictIsFinalOnceTheCallIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(succeed), store: newMemory("s")}
		b.api.submit = func(context.Context, call.Batch) error {
			b.api.mu.Lock()
			b.api.calls = nil // somebody else answered it
			b.api.mu.Unlock()
			return &call.Refusal{Class: call.RefusedConflict, Status: 409, Err: errors.New("has a different result")}
		}
		b.run(t, Config{}, func() {
			wait(time.Second)
			require.Equal(t, call.Obsolete, b.store.state(listedCalls(1)[0].Key))
			_, batches := b.api.seen()
			require.Len(t, batches, 1)
			require.Equal(t, 1, b.queue.acks)
		})
	})
}

func TestSessionIsGoneWhenItsResultsAreSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(2)}, queue: newFakeQueue(succeed), store: newMemory("s")}
		b.api.submit = func(context.Context, call.Batch) error {
			b.api.mu.Lock()
			b.api.gone = true
			b.api.mu.Unlock()
			return &call.Refusal{Class: call.RefusedGone, Status: 404, Err: errors.New("no such session")}
		}
		b.run(t, Config{}, func() {
			wait(10 * time.Second)
			_, batches := b.api.seen()
			require.Len(t, batches, 1, "a session that is gone is not asked again and again")
			for _, c := range listedCalls(2) {
				require.Equal(t, call.Cancelled, b.store.state(c.Key))
			}
			require.Equal(t, 2, b.queue.acks, "nothing waits for it any more")
		})
	})
}

func TestCallThatVanishesWhileItIsPublished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.slow = 3 * time.Second
		b.run(t, Config{}, func() {
			wait(time.Second)
			b.api.mu.Lock()
			b.api.calls = nil
			b.api.mu.Unlock()
			b.d.Nudge("s", "test")
			wait(5 * time.Second)
			require.Equal(t, call.Cancelled, b.store.state(listedCalls(1)[0].Key))
			require.Len(t, b.queue.cancelled, 1)
		})
	})
}

func TestOutcomeStaysUntilTheResultIsApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(succeed), store: newMemory("s")}
		var lose atomic.Bool
		lose.Store(true)
		b.api.lose = func() bool { return lose.Load() }
		b.run(t, Config{Resend: 20 * time.Second}, func() {
			wait(10 * time.Second)
			require.Equal(t, call.Submitted, b.store.state(listedCalls(1)[0].Key))
			ds := b.queue.dispatches()
			again, _ := succeed(ds[0])
			again.Key, again.Nonce = ds[0].Key, ds[0].Nonce
			b.queue.deliver(ds[0], again) // its lease ran out
			wait(5 * time.Second)
			require.Zero(t, b.queue.acked(), "accepted is not applied")
			lose.Store(false)
			wait(20 * time.Second)
			require.Equal(t, call.Settled, b.store.state(listedCalls(1)[0].Key))
			require.Equal(t, 1, b.queue.acked(), "of its latest delivery")
		})
	})
}

func TestResultOfACallThatNobodyHasSeenListedIsNotSent(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{false, true} {
		t.Run(fmt.Sprint("listed ", listed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{api: &fakeAPI{}, queue: newFakeQueue(nil), store: newMemory("s")}
				c := listedCalls(1)[0]
				b.run(t, Config{}, func() {
					wait(time.Second)
					_, err := b.store.Claim(context.Background(), 1, []results.Claim{{Key: c.Key, Function: "f", State: call.Seen}})
					require.NoError(t, err)
					if listed {
						b.api.mu.Lock()
						b.api.calls = listedCalls(1)
						b.api.mu.Unlock()
					}
					nonce := call.NewNonces([]byte("0123456789abcdef")).For(c.Key, call.Token(c.Function), 1)
					b.queue.deliver(call.Dispatch{Call: c, Handover: 1}, call.Outcome{Key: c.Key, Nonce: nonce, Kind: call.Success, Output: []byte(`"x"`)})
					wait(5 * time.Second)
					_, batches := b.api.seen()
					if listed {
						require.Len(t, batches, 1)
						require.Equal(t, call.Settled, b.store.state(c.Key))
						return
					}
					require.Empty(t, batches, "it was answered before, and the store lost that")
					require.Equal(t, call.Cancelled, b.store.state(c.Key))
				})
			})
		})
	}
}
