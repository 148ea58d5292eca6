package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

var sweeping = Config{AckWait: time.Second, RegistryCheck: 200 * time.Millisecond, Partitions: 2}

// Nobody reads the server's notice here: it is as good as lost.
func TestACallWhoseNoticeWasLostIsFoundAndAnswered(t *testing.T) {
	t.Parallel()
	i := install(t, sweeping)
	collected := i.collect(t)
	_, puller := i.executor(t, "p", "f", "my function")
	i.exhaust(t, "p")
	d := i.dispatch("sess_1", "my function", 1, `{"x":1}`)
	d.OnUncertain = call.UncertainFail
	i.publish(t, d)
	takeAndForget(t, puller)
	require.Eventually(t, func() bool { return len(collected.of(d.Key)) == 1 }, patience, 20*time.Millisecond)
	require.Equal(t, call.Outcome{
		Key: d.Key, Nonce: d.Nonce, Kind: call.Failure, Error: call.CrashedText + "; " + call.UnknownOutcomeText, Cause: "crashed",
	}, collected.of(d.Key)[0].Outcome)
	require.Eventually(t, func() bool { return i.repairs.of(RepairStuckCall) == 1 }, patience, 20*time.Millisecond)
	require.Zero(t, i.messages(t, "FN_CALLS"))
	letters, err := i.dispatcher.DeadLetters(testContext(t), "my function", 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, DeadMaxDeliveries, letters[0].Reason)
	require.Contains(t, letters[0].Detail, "found by the sweep: pool_p is past it")
	letter, err := i.dispatcher.DeadLetter(testContext(t), letters[0].Sequence)
	require.NoError(t, err)
	require.Equal(t, string(appendCall(nil, &d.Call)), string(letter.Body))
}

// A dispatcher died after it gave a consumer another function, and before it moved what
// waited there.
func TestACallThatItsConsumerPassedIsFound(t *testing.T) {
	t.Parallel()
	i := install(t, sweeping)
	ctx := testContext(t)
	collected := i.collect(t)
	_, puller := i.executor(t, "p", "f")
	passed := i.dispatch("sess_1", "h", 1, `{}`)
	i.publish(t, passed, i.dispatch("sess_1", "f", 2, `{}`))
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { require.NoError(t, taken.Ack()) }))

	i.registry.deciding.Lock()
	_, revision, err := i.registry.poolTokens(ctx, "p")
	require.NoError(t, err)
	require.NoError(t, i.registry.setPoolTokens(ctx, "p", []string{"f", "h"}, revision))
	_, err = i.dispatcher.js.UpdateConsumer(ctx, "FN_CALLS", i.dispatcher.poolConfig("p", []string{"fn.call.f", "fn.call.h"}))
	i.registry.deciding.Unlock()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(collected.of(passed.Key)) == 1 }, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return i.repairs.of(RepairStuckCall) == 1 }, patience, 20*time.Millisecond)
}

func TestAStuckCallThatWasAnsweredIsOnlyRemoved(t *testing.T) {
	t.Parallel()
	i := install(t, sweeping)
	var says atomic.Value
	says.Store(call.StandingAnswered)
	i.answering(t, &says)
	_, puller := i.executor(t, "p", "f")
	i.exhaust(t, "p")
	i.publish(t, i.dispatch("sess_1", "f", 1, `{}`))
	takeAndForget(t, puller)
	require.Eventually(t, func() bool { return i.repairs.of(RepairStuckCall) == 1 }, patience, 20*time.Millisecond)
	require.Zero(t, i.messages(t, "FN_CALLS"))
	require.Zero(t, i.messages(t, "FN_RESULTS"))
	require.Zero(t, i.messages(t, "FN_DEAD"))
}

// Calls that wait, that are held, and that come again are where their consumer is not
// past them, however much it ends beside them.
func TestTheSweepLeavesHealthyCallsAlone(t *testing.T) {
	t.Parallel()
	i := install(t, sweeping)
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	ds := i.publish(t, i.dispatch("s", "f", 1, `{}`), i.dispatch("s", "f", 2, `{}`))
	var held *Taken
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { held = taken }))
	require.NoError(t, puller.Pull(ctx, 1, func(*Taken) {})) // comes again
	again, n := 0, 2
	for began := time.Now(); time.Since(began) < 4*sweeping.AckWait; n++ {
		require.NoError(t, held.InProgress())
		i.publish(t, i.dispatch("s", "f", n+1, `{}`))
		bounded, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		_ = puller.Pull(bounded, 1, func(taken *Taken) {
			if taken.Dispatch.Key == ds[1].Key && again == 0 {
				again++ // and is forgotten once more
				return
			}
			require.NoError(t, taken.Ack())
		})
		cancel()
	}
	require.NotZero(t, again)
	require.NoError(t, held.Ack())
	var group sync.WaitGroup
	pulling, stop := context.WithCancel(ctx)
	group.Go(func() {
		for pulling.Err() == nil {
			_ = puller.Pull(pulling, 8, func(taken *Taken) { _ = taken.Ack() })
		}
	})
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 0 }, patience, 20*time.Millisecond)
	stop()
	group.Wait()
	require.Zero(t, i.repairs.of(RepairStuckCall))
	require.Zero(t, i.messages(t, "FN_DEAD"))
	_, err := i.dispatcher.js.Consumer(ctx, "FN_CALLS", poolDurable("p"))
	require.NotErrorIs(t, err, jetstream.ErrConsumerNotFound)
}
