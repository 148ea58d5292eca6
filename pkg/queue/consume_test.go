package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestOutcomesThatAreNotAckedComeAgain(t *testing.T) {
	t.Parallel()
	i := install(t, Config{AckWait: time.Second, Partitions: 1})
	ctx := testContext(t)
	d := i.dispatch("s", "f", 1, `{}`)
	require.NoError(t, i.dispatcher.Report(ctx, d, call.Outcome{Kind: call.Success, Output: []byte(`"x"`)}))
	consuming, cancel := context.WithCancelCause(ctx)
	done := errors.New("done")
	var counts []int
	err := i.dispatcher.Consume(consuming, 0, func(batch []call.Delivered) {
		for _, o := range batch {
			counts = append(counts, o.Deliveries)
			if len(counts) == 2 {
				o.Ack()
				o.Ack()
				cancel(done)
			}
		}
	})
	require.ErrorIs(t, err, done)
	require.Equal(t, []int{1, 2}, counts)
	require.Eventually(t, func() bool { return i.messages(t, "FN_RESULTS") == 0 }, patience, 10*time.Millisecond)
}

func TestBatchesFormWhileTheHandlerIsBusy(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 1})
	ctx := testContext(t)
	const outcomes = 1000
	sizes := make(chan int, outcomes)
	first, all := make(chan struct{}), make(chan struct{})
	consuming, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		total := 0
		ended <- i.dispatcher.Consume(consuming, 0, func(batch []call.Delivered) {
			if total == 0 {
				close(first)
				<-all
			}
			sizes <- len(batch)
			for _, o := range batch {
				o.Ack()
			}
			if total += len(batch); total == outcomes {
				cancel()
			}
		})
	}()
	for n := range outcomes {
		d := i.dispatch("s", "f", n, `{}`)
		require.NoError(t, i.dispatcher.Report(ctx, d, call.Outcome{Kind: call.Deferred}))
		if n == 0 {
			<-first
		}
	}
	close(all)
	require.ErrorIs(t, <-ended, context.Canceled)
	close(sizes)
	most, batches := 0, 0
	for size := range sizes {
		most, batches = max(most, size), batches+1
	}
	require.LessOrEqual(t, most, maxPull)
	require.Greater(t, most, 100)
	require.Less(t, batches, outcomes/4)
}

func TestAnotherOwnerGetsWhatWasNotHandled(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 1})
	ctx := testContext(t)
	for n := range 100 {
		require.NoError(t, i.dispatcher.Report(ctx, i.dispatch("s", "f", n, `{}`), call.Outcome{Kind: call.Deferred}))
	}
	// The first owner stops with its first batch; what else had been sent to it must
	// not wait for the lease of 30 s.
	first, stop := context.WithCancel(ctx)
	handled := 0
	_ = i.dispatcher.Consume(first, 0, func(batch []call.Delivered) {
		stop()
		handled += len(batch)
		for _, o := range batch {
			o.Ack()
		}
	})
	second, stop := context.WithCancel(ctx)
	start := time.Now()
	if handled < 100 {
		_ = i.dispatcher.Consume(second, 0, func(batch []call.Delivered) {
			for _, o := range batch {
				o.Ack()
			}
			if handled += len(batch); handled == 100 {
				stop()
			}
		})
	}
	stop()
	require.Equal(t, 100, handled)
	require.Less(t, time.Since(start), 10*time.Second)
}

func TestConsumeMakesAConsumerThatIsGone(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 1})
	ctx := testContext(t)
	collected := i.collect(t)
	a, b := i.dispatch("s", "f", 1, `{}`), i.dispatch("s", "f", 2, `{}`)
	require.NoError(t, i.dispatcher.Report(ctx, a, call.Outcome{Kind: call.Deferred}))
	require.Eventually(t, func() bool { return len(collected.of(a.Key)) == 1 }, patience, 10*time.Millisecond)
	require.NoError(t, i.dispatcher.js.DeleteConsumer(ctx, "FN_RESULTS", "res_p00"))
	require.NoError(t, i.dispatcher.Report(ctx, b, call.Outcome{Kind: call.Deferred}))
	require.Eventually(t, func() bool { return len(collected.of(b.Key)) == 1 }, patience, 10*time.Millisecond)
}

func TestPartitionsOutsideTheLayout(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2})
	require.ErrorContains(t, i.dispatcher.Consume(t.Context(), 2, nil), "does not exist")
	require.ErrorContains(t, i.dispatcher.Consume(t.Context(), -1, nil), "does not exist")
}
