package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// Two runs of one attempt report under the same message id, which the queue recognises
// for a while only.
func TestAnotherResultOfTheSameAttemptIsNotARepetition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.run(t, Config{}, func() {
			wait(time.Second)
			d := b.queue.dispatches()[0]
			for _, output := range []string{`"one"`, `"two"`, `"one"`} {
				b.queue.deliver(d, call.Outcome{Key: d.Key, Nonce: d.Nonce, Kind: call.Success, Output: []byte(output)})
				wait(time.Millisecond) // before the end of the call is on record
			}
			wait(time.Second)
			_, batches := b.api.seen()
			require.NotEmpty(t, batches)
			for _, batch := range batches {
				for _, a := range batch.Answers {
					require.Equal(t, `"one"`, string(a.Result.Output))
				}
			}
			require.Equal(t, 3, b.queue.acked())
			require.Equal(t, call.Settled, b.store.state(d.Key))
		})
	})
}

// An executor that asks while the store has lost everything is told so, and perhaps
// answers that nobody knows.
func TestResultInMemoryOutlivesTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.api.lose = func() bool { return true }
		b.run(t, Config{}, func() {
			wait(time.Second)
			d := b.queue.dispatches()[0]
			b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Success, Output: []byte(`"done"`)}))
			wait(time.Second)
			b.store.mu.Lock()
			clear(b.store.records)
			b.store.mu.Unlock()
			b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Failure, Error: "nobody knows", Cause: call.ReasonUnknownOutcome}))
			wait(time.Minute)
			_, batches := b.api.seen()
			require.Greater(t, len(batches), 1, "the API lists it on, so it is sent again")
			for _, batch := range batches {
				require.Equal(t, `"done"`, string(batch.Answers[0].Result.Output))
			}
			require.True(t, b.store.state(d.Key).Saved())
		})
	})
}
