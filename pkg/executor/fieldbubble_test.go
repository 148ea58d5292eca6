package executor

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// Cases from the field with the times as they were; field_test.go has them on a real
// server, which takes no lease below 1 s.

func TestField_TwoExecutorsShareTenCallsInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue(500 * time.Millisecond)
		start := func() (*bundle, *atomic.Int64) {
			var runs atomic.Int64
			b := newBundle(t, Config{Concurrency: 1})
			b.q = q
			b.on("f", func(context.Context) error {
				runs.Add(1)
				<-time.After(300 * time.Millisecond)
				return nil
			})
			b.start()
			return b, &runs
		}
		one, byOne := start()
		two, byTwo := start()
		for n := range 10 {
			q.publish(dispatch("f", n))
		}
		pass(5 * time.Second)
		require.EqualValues(t, 10, byOne.Load()+byTwo.Load())
		require.Positive(t, byOne.Load())
		require.Positive(t, byTwo.Load())
		require.Len(t, q.reported(), 10)
		require.Equal(t, 0, q.left())
		require.NoError(t, one.end())
		require.NoError(t, two.end())
	})
}

func TestField_HandlerOfThreeLeasesRunsOnceInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.q.ackWait = 500 * time.Millisecond
		b.on("slow", func(context.Context) error { <-time.After(1500 * time.Millisecond); return nil })
		b.start()
		b.q.publish(dispatch("slow", 1))
		pass(2 * time.Second)
		require.Equal(t, 1, b.q.first().deliveries)
		require.GreaterOrEqual(t, b.q.first().extended, 7)
		require.Equal(t, "done", textOf(t, b.outcome()))
		require.NoError(t, b.end())
	})
}

func TestField_HandlerThatNeverReturnsFreesItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{Concurrency: 1})
		release := make(chan struct{})
		var cause error
		b.on("hangs", func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			<-release
			return nil
		})
		b.on("f", func(context.Context) error { return nil })
		b.start()
		began := time.Now()
		b.q.publish(dispatch("hangs", 1), dispatch("f", 2))
		pass(30*time.Second + time.Millisecond)
		o := b.outcome()
		require.Equal(t, "timed out after 30s", o.Error)
		require.Equal(t, call.ReasonTimeout, o.Cause)
		pass(2 * time.Second)
		require.Len(t, b.q.reported(), 2, "the next call got the slot")
		require.Less(t, time.Since(began), 33*time.Second)
		require.ErrorIs(t, cause, ErrTimeout)
		require.Equal(t, 1, b.seen.abandoned)
		close(release)
		synctest.Wait()
		require.Contains(t, b.logs.String(), "abandoned handler returned")
		require.ErrorIs(t, b.end(), ErrHandlersLeft)
		require.Len(t, b.q.reported(), 2, "a late return is not reported")
	})
}
