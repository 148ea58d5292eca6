package dispatcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func TestPublicationIsRepeatedAndThenUncertain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.fail = errors.New("no answer")
		b.run(t, Config{DuplicateWindow: time.Minute}, func() {
			wait(30 * time.Second)
			b.queue.mu.Lock()
			b.queue.fail = nil
			b.queue.mu.Unlock()
			wait(20 * time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 1)
			require.Equal(t, 1, ds[0].Handover, "within the duplicate window it is the same hand-over")
			require.False(t, ds[0].Uncertain)
		})
	})
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.fail = errors.New("no answer")
		b.run(t, Config{DuplicateWindow: 30 * time.Second}, func() {
			wait(37 * time.Second)
			b.queue.mu.Lock()
			b.queue.fail = nil
			b.queue.mu.Unlock()
			wait(20 * time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 1)
			require.Equal(t, 2, ds[0].Handover)
			require.True(t, ds[0].Uncertain, "an earlier try may have been stored, and nobody would recognise this one")
		})
	})
}

// A retry that goes on beyond the duplicate window would be stored as a second call, and run.
func TestAPublicationEndsBeforeTheQueueForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.fail = errors.New("no answer")
		b.run(t, Config{DuplicateWindow: 30 * time.Second}, func() {
			wait(15 * time.Second)
			b.queue.mu.Lock()
			b.queue.hangs = true
			b.queue.mu.Unlock()
			wait(9 * time.Second)
			b.queue.mu.Lock()
			b.queue.fail, b.queue.hangs = nil, false
			b.queue.mu.Unlock()
			require.Empty(t, b.queue.dispatches(), "the one that hangs has not come to its end")
			wait(14 * time.Second) // a delay of up to 10 s follows
			ds := b.queue.dispatches()
			require.Len(t, ds, 1, "it ended 25 s after the first try")
			require.Equal(t, 2, ds[0].Handover)
			require.True(t, ds[0].Uncertain)
		})
	})
}

func TestHandOverThatIsOverIsRepeatedAsUncertain(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, then func(b *bench)) {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
			b.function.Policy = persistent
			b.queue.fail = errGone // an earlier owner published it, and the store lost the record
			b.run(t, Config{DuplicateWindow: time.Minute}, func() {
				wait(time.Second)
				b.queue.mu.Lock()
				b.queue.fail = nil
				b.queue.mu.Unlock()
				then(b)
			})
		})
	}
	key := listedCalls(1)[0]
	d := call.Dispatch{Call: key, Attempt: 1, Handover: 1, Nonce: call.NewNonces([]byte("0123456789abcdef")).For(key.Key, call.Token(key.Function), 1)}
	t.Run("no outcome comes", func(t *testing.T) {
		start(t, func(b *bench) {
			wait(15 * time.Second)
			require.Empty(t, b.queue.dispatches(), "its outcome may be on its way")
			wait(10 * time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 1)
			require.Equal(t, 2, ds[0].Handover)
			require.True(t, ds[0].Uncertain)
		})
	})
	t.Run("its result comes", func(t *testing.T) {
		start(t, func(b *bench) {
			b.queue.deliver(d, call.Outcome{Key: d.Key, Nonce: d.Nonce, Kind: call.Success, Output: []byte(`"x"`)})
			wait(time.Minute)
			require.Empty(t, b.queue.dispatches())
			require.Equal(t, call.Settled, b.store.state(d.Key))
		})
	})
	t.Run("a later attempt is heard of", func(t *testing.T) {
		start(t, func(b *bench) {
			nonce := call.NewNonces([]byte("0123456789abcdef")).For(key.Key, call.Token(key.Function), 2)
			b.queue.deliver(d, call.Outcome{Key: d.Key, Nonce: nonce, Kind: call.Retry, Reason: "no"})
			wait(30 * time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 1)
			require.Equal(t, 3, ds[0].Attempt, "the store had lost two")
		})
	})
	t.Run("a later hand-over was given back", func(t *testing.T) {
		start(t, func(b *bench) {
			d := d
			d.Handover = 4
			b.queue.deliver(d, call.Outcome{Key: d.Key, Nonce: d.Nonce, Kind: call.Released})
			wait(time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 1)
			require.Equal(t, 5, ds[0].Handover, "the store had lost three")
		})
	})
	t.Run("it was given back", func(t *testing.T) {
		start(t, func(b *bench) {
			b.queue.deliver(d, call.Outcome{Key: d.Key, Nonce: d.Nonce, Kind: call.Released})
			wait(time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 1)
			require.False(t, ds[0].Uncertain, "it was never started")
		})
	})
}

func TestAWaitForAnOutcomeIsNotBegunAgainByEachOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		_, err := b.store.Claim(context.Background(), 1, []results.Claim{{Key: listedCalls(1)[0].Key, Function: "f", State: call.Seen}})
		require.NoError(t, err)
		wait(10 * time.Second) // with another owner
		b.queue.fail = errGone
		b.run(t, Config{DuplicateWindow: time.Minute}, func() {
			wait(9 * time.Second)
			b.queue.mu.Lock()
			b.queue.fail = nil
			b.queue.mu.Unlock()
			require.Empty(t, b.queue.dispatches())
			wait(2 * time.Second)
			require.Len(t, b.queue.dispatches(), 1)
			require.True(t, b.queue.dispatches()[0].Uncertain)
		})
	})
}

func TestReleasedCallIsHandedOverAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, store: newMemory("s")}
		b.queue = newFakeQueue(func(d call.Dispatch) (call.Outcome, bool) {
			if d.Handover < 3 {
				return call.Outcome{Kind: call.Released}, true
			}
			return succeed(d)
		})
		b.run(t, Config{}, func() {
			wait(time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 3)
			require.Equal(t, ds[0].Nonce, ds[2].Nonce, "it is the same attempt")
			require.False(t, ds[2].Uncertain, "it was never started")
			// A release that comes once more belongs to a hand-over that is over.
			b.queue.deliver(ds[0], call.Outcome{Key: ds[0].Key, Nonce: ds[0].Nonce, Kind: call.Released})
			wait(time.Second)
			require.Len(t, b.queue.dispatches(), 3)
			require.Equal(t, call.Settled, b.store.state(ds[0].Key))
			require.Equal(t, 4, b.queue.acks)
		})
	})
}

func TestCallFoundClaimedWaitsForItsOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(2)}, queue: newFakeQueue(succeed), store: newMemory("s")}
		found, fresh := listedCalls(2)[0].Key, listedCalls(2)[1].Key
		b.queue.reported = func(d call.Dispatch) bool { return d.Key == found }
		_, err := b.store.Claim(context.Background(), 1, []results.Claim{{Key: found, Function: "f", State: call.Seen}})
		require.NoError(t, err)
		wait(5 * time.Second) // its owner is dead
		b.run(t, Config{}, func() {
			wait(10 * time.Second)
			require.Equal(t, call.Settled, b.store.state(fresh), "what is claimed here does not wait")
			require.Len(t, b.queue.dispatches(), 1, "the outcome of the other comes when the hold on it ends")
			wait(5 * time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 2)
			require.Equal(t, found, ds[1].Key)
			require.Equal(t, 1, ds[1].Handover, "the queue recognises it if it has it")
			require.False(t, ds[1].Uncertain)
			require.Equal(t, call.Settled, b.store.state(found))
		})
	})
}

// Owners that die faster than an outcome's lease runs out must not keep a call waiting
// until its time is over.
func TestCallFoundClaimedWithoutOutcomeIsHandedOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(succeed), store: newMemory("s")}
		found := listedCalls(1)[0].Key
		_, err := b.store.Claim(context.Background(), 1, []results.Claim{{Key: found, Function: "f", State: call.Seen}})
		require.NoError(t, err)
		wait(5 * time.Second) // its owner is dead
		b.run(t, Config{}, func() {
			wait(time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 1)
			require.Equal(t, 1, ds[0].Handover, "the queue recognises it if it has it")
			require.False(t, ds[0].Uncertain)
			require.Equal(t, call.Settled, b.store.state(found))
		})
	})
}

func TestCallFoundClaimedThatWasGivenBackDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.reported = func(call.Dispatch) bool { return true }
		c := listedCalls(1)[0]
		_, err := b.store.Claim(context.Background(), 1, []results.Claim{{Key: c.Key, Function: "f", State: call.Seen}})
		require.NoError(t, err)
		nonce := call.NewNonces([]byte("0123456789abcdef")).For(c.Key, call.Token(c.Function), 1)
		b.queue.deliver(call.Dispatch{Call: c, Handover: 1}, call.Outcome{Key: c.Key, Nonce: nonce, Kind: call.Released})
		b.run(t, Config{}, func() {
			wait(time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 1)
			require.Equal(t, 2, ds[0].Handover, "the first one is over")
			require.False(t, ds[0].Uncertain)
			require.Equal(t, 1, b.queue.acks)
		})
	})
}

func TestGracefulStopHandsOverWhatItClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(3)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.store.slow, b.queue.slow = 2*time.Second, 2*time.Second
		b.run(t, Config{}, func() {
			wait(time.Second)
			require.Empty(t, b.queue.dispatches(), "the claim is under way")
		})
		require.Len(t, b.queue.dispatches(), 3)
	})
}
