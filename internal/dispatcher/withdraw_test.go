package dispatcher

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestCallThatNobodyTookIsAnsweredAtTheQueueTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.function.Policy = call.Policy{QueueTimeout: call.Duration(20 * time.Second), Timeout: call.Duration(time.Hour)}
		b.run(t, Config{}, func() {
			wait(19 * time.Second)
			_, batches := b.api.seen()
			require.Empty(t, batches)
			wait(2 * time.Second)
			_, batches = b.api.seen()
			require.Len(t, batches, 1)
			require.Equal(t, call.Result{Error: "no executor is available for f", Reason: call.ReasonNoExecutor}, batches[0].Answers[0].Result)
			require.Len(t, b.queue.withdrawn, 1)
		})
	})
}

func TestCallThatAnExecutorHasIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.function.Policy = call.Policy{QueueTimeout: call.Duration(20 * time.Second), Timeout: call.Duration(time.Minute)}
		b.queue.taken = func(call.Dispatch) bool { return true }
		b.run(t, Config{}, func() {
			wait(time.Minute)
			_, batches := b.api.seen()
			require.Empty(t, batches)
			b.queue.deliver(b.queue.dispatches()[0], withIDs(b.queue.dispatches()[0], call.Outcome{Kind: call.Success, Output: []byte(`"ok"`)}))
			wait(time.Second)
			_, batches = b.api.seen()
			require.True(t, batches[0].Answers[0].Result.Success)
		})
	})
}

func TestUncertainCallThatNobodyTookAgainIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.fail = errGone // published before, and over
		b.run(t, Config{DuplicateWindow: 30 * time.Second}, func() {
			wait(5 * time.Second)
			b.queue.mu.Lock()
			b.queue.fail = nil
			b.queue.mu.Unlock()
			wait(2 * time.Minute)
			require.True(t, b.queue.dispatches()[0].Uncertain)
			_, batches := b.api.seen()
			require.Equal(t, call.ReasonUnknownOutcome, batches[0].Answers[0].Result.Reason)
		})
	})
}

func TestLateResultIsEvidence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.taken = func(call.Dispatch) bool { return true }
		b.run(t, Config{}, func() {
			wait(2 * time.Minute)
			_, batches := b.api.seen()
			require.Equal(t, call.ReasonDeadline, batches[0].Answers[0].Result.Reason)
			d := b.queue.dispatches()[0]
			late := withIDs(d, call.Outcome{Kind: call.Success, Output: []byte(`"paid"`)})
			b.queue.deliver(d, late)
			wait(time.Second)
			require.Len(t, b.queue.buried, 1)
			require.Equal(t, EventLateResult, b.queue.buried[0].Reason)
			require.Contains(t, b.queue.buried[0].Detail, "settled")
			require.Equal(t, 1, b.queue.acked())
			_, batches = b.api.seen()
			require.Len(t, batches, 1, "it is not sent")
		})
	})
}

// While the queue cannot say whether a call was taken, it is asked once a second, and the deadline decides.
func TestQueueThatCannotSayIsAskedCalmly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(2)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.function.Policy = call.Policy{QueueTimeout: call.Duration(20 * time.Second), Timeout: call.Duration(20 * time.Second)}
		b.queue.unsure = errors.New("no answer")
		b.run(t, Config{}, func() {
			wait(40 * time.Second)
			b.queue.mu.Lock()
			asked := b.queue.asked
			b.queue.mu.Unlock()
			require.InDelta(t, 2*20, asked, 4)
			wait(10 * time.Second)
			_, batches := b.api.seen()
			require.Equal(t, call.ReasonDeadline, batches[0].Answers[0].Result.Reason)
		})
	})
}
