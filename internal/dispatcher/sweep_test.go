package dispatcher

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// counted keeps the events.
type counted struct {
	noObserver
	mu     sync.Mutex
	events map[string]int
}

func (c *counted) Count(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events == nil {
		c.events = map[string]int{}
	}
	c.events[event]++
}

func (c *counted) of(event string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[event]
}

func TestSweepFindsASessionThatNobodyWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory()}
		key := listedCalls(1)[0].Key
		_, err := b.store.Claim(context.Background(), 1, []results.Claim{{Key: key, Function: "f", State: call.Seen}})
		require.NoError(t, err)
		_, err = b.store.Complete(context.Background(), nil, []results.Completion{{
			Key: key, OutcomeID: "o", Result: call.Result{Success: true, Output: []byte(`"saved"`)},
		}})
		require.NoError(t, err)
		seen := &counted{}
		b.run(t, Config{Observer: seen}, func() {
			wait(time.Minute)
			_, batches := b.api.seen()
			require.Empty(t, batches, "saved by an owner that died; nobody watches the session")
			wait(10 * time.Minute)
			_, batches = b.api.seen()
			require.Len(t, batches, 1)
			require.Equal(t, call.Settled, b.store.state(key))
			require.Equal(t, 1, seen.of(EventSessionFound))
		})
	})
}

func TestSweepFindsACallThatItsSessionForgot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{}, queue: newFakeQueue(succeed), store: newMemory("s")}
		key := listedCalls(1)[0].Key
		seen := &counted{}
		b.run(t, Config{Observer: seen}, func() {
			wait(time.Second)
			// Recorded behind the session's back, and not listed any more.
			_, err := b.store.Claim(context.Background(), 1, []results.Claim{{Key: key, Function: "f", State: call.Seen}})
			require.NoError(t, err)
			wait(20 * time.Minute)
			require.Equal(t, call.Cancelled, b.store.state(key))
			require.Equal(t, 1, seen.of(EventCallFound))
		})
	})
}

func TestStoreThatLostEverythingIsRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.function.Policy = call.Policy{Timeout: call.Duration(time.Hour), TotalDeadline: call.Duration(2 * time.Hour)}
		b.queue.taken = func(call.Dispatch) bool { return true }
		key := listedCalls(1)[0].Key
		seen := &counted{}
		b.run(t, Config{Observer: seen}, func() {
			wait(time.Minute)
			b.store.flush()
			wait(2 * time.Second)
			require.Equal(t, 1, seen.of(EventListRestored))
			require.Equal(t, []string{"s"}, b.store.attached)
			wait(10 * time.Minute)
			require.Equal(t, call.Queued, b.store.state(key), "an open call is on record again")
			require.Equal(t, 1, seen.of(EventRecordRestored))
			require.Len(t, b.queue.dispatches(), 1, "and is not handed over again")

			b.api.mu.Lock()
			b.api.submit = func(context.Context, call.Batch) error { return &call.Refusal{Class: call.RefusedBusy, Status: 503} }
			b.api.mu.Unlock()
			d := b.queue.dispatches()[0]
			b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Success, Output: []byte(`"ok"`)}))
			wait(time.Second)
			require.Equal(t, call.Succeeded, b.store.state(key))
			b.store.flush()
			wait(10 * time.Minute)
			require.Equal(t, call.Succeeded, b.store.state(key), "so is a saved result")
			require.Zero(t, b.queue.acked())
		})
	})
}

func TestCallThatNoEventToldOfIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{}, queue: newFakeQueue(succeed), store: newMemory("s")}
		seen := &counted{}
		b.run(t, Config{Observer: seen}, func() {
			wait(time.Second)
			b.api.mu.Lock()
			b.api.calls = listedCalls(2)
			b.api.mu.Unlock()
			wait(2 * time.Minute)
			require.Equal(t, 2, seen.of(EventCallMissed))
			require.Equal(t, call.Settled, b.store.state(listedCalls(2)[1].Key))
		})
	})
}
