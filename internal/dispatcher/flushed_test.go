package dispatcher

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// flushedUnder runs a dispatcher, empties the store, and runs the next owner, which the queue
// still gives what was not acked.
func flushedUnder(t *testing.T, b *bench, first, then func()) {
	t.Helper()
	b.run(t, Config{}, first)
	b.store.flush()
	require.NoError(t, b.store.Attach(context.Background(), "s"))
	b.run(t, Config{}, then)
}

func TestParkedCallOutlivesTheStore(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"its outcome comes first": true, "the session comes first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, key := parkedBench()
				var d call.Dispatch
				uncertain := func() { b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Uncertain, Reason: "no trace"})) }
				flushedUnder(t, b, func() {
					wait(time.Hour)
					require.Equal(t, call.Parked, b.store.state(key))
					d = b.queue.dispatches()[0]
					b.queue.reported = func(asked call.Dispatch) bool { return asked.Key == key }
				}, func() {
					if early {
						uncertain() // whoever comes is given it
					} else {
						wait(8 * time.Second)
						require.Equal(t, call.Seen, b.store.state(key))
						uncertain()
					}
					wait(time.Minute)
					require.Equal(t, call.Parked, b.store.state(key))
					require.Len(t, b.queue.dispatches(), 1, "it is not handed over again")
					require.NoError(t, b.d.Decide(context.Background(), key, Decision{Rerun: true}))
					wait(time.Second)
					require.Equal(t, call.Settled, b.store.state(key))
				})
			})
		})
	}
}

func TestDeferredCallOutlivesItsDispatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.taken = func(call.Dispatch) bool { return true }
		var d call.Dispatch
		deferred := func() { b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Deferred})) }
		b.run(t, Config{}, func() {
			wait(time.Second)
			d = b.queue.dispatches()[0]
			deferred()
			wait(time.Second)
			require.Zero(t, b.queue.acked())
		})
		b.run(t, Config{}, func() {
			deferred() // its lease ran out
			wait(time.Hour)
			_, batches := b.api.seen()
			require.Empty(t, batches, "no deadline of a handler applies to it")
			b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Success, Output: []byte(`"done"`)}))
			wait(time.Second)
			_, batches = b.api.seen()
			require.Len(t, batches, 1)
			require.Equal(t, 2, b.queue.acked())
		})
	})
}

func TestDecisionThatComesBeforeItsCallIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, key := parkedBench()
		b.queue.run = nil
		nonces := call.NewNonces([]byte("0123456789abcdef"))
		d := call.Dispatch{Call: listedCalls(1)[0], Attempt: 1, Handover: 1}
		b.store.slow = 5 * time.Second // the claim takes long
		b.run(t, Config{}, func() {
			wait(time.Second)
			b.queue.deliver(d, call.Outcome{Key: key, Nonce: nonces.For(key, "f", 1), Kind: call.Uncertain, Reason: "no trace"})
			wait(time.Minute)
			require.Equal(t, call.Parked, b.store.state(key), "the outcome waited for the claim")
			require.Empty(t, b.queue.dispatches())
		})
	})
}

func TestCallIsNotHandedOverWhileAnOutcomeOfItIsInTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		var held atomic.Bool
		held.Store(true)
		b.queue.reported = func(call.Dispatch) bool { return held.Load() }
		b.run(t, Config{}, func() {
			wait(80 * time.Second)
			require.Empty(t, b.queue.dispatches(), "another dispatcher has the outcome")
			held.Store(false) // it was of use to nobody
			wait(21 * time.Second)
			require.True(t, b.queue.dispatches()[0].Uncertain)
		})
	})
}

func TestLongRunOutlivesTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.function.Policy = call.Policy{Timeout: call.Duration(time.Hour), TotalDeadline: call.Duration(2 * time.Hour)}
		b.queue.taken = func(call.Dispatch) bool { return true }
		key := listedCalls(1)[0].Key
		flushedUnder(t, b, func() {
			wait(30 * time.Minute) // the queue would not recognise its hand-over any more
			b.queue.stored = map[call.Key]uint64{key: 1}
		}, func() {
			wait(10 * time.Minute)
			require.Len(t, b.queue.dispatches(), 1, "an executor has it")
			d := b.queue.dispatches()[0]
			b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Success, Output: []byte(`"ok"`)}))
			wait(time.Second)
			require.Equal(t, call.Settled, b.store.state(key))
		})
	})
}

func TestPublicationUnderWayIsToldOfAResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.run(t, Config{}, func() {
			wait(time.Second)
			d := b.queue.dispatches()[0]
			select {
			case <-d.Over:
				t.Fatal("it is open")
			default:
			}
			b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Success, Output: []byte(`"ok"`)}))
			<-d.Over
		})
	})
}

func TestOutcomeWaitsForItsSessionToBeWatchedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, key := parkedBench()
		b.run(t, Config{}, func() { wait(time.Hour) })
		b.store.flush()
		b.run(t, Config{}, func() {
			d := b.queue.dispatches()[0]
			b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Uncertain, Reason: "no trace"}))
			wait(time.Hour)
			require.Zero(t, b.queue.acked())
			require.NoError(t, b.store.Attach(context.Background(), "s"))
			wait(time.Minute)
			require.Equal(t, call.Parked, b.store.state(key))
			require.Len(t, b.queue.dispatches(), 1)
		})
	})
}
