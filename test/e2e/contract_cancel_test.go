package e2e

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

func TestContract_CancelledWhileItIsVerified(t *testing.T) {
	t.Parallel()
	verifying, stopped := make(chan struct{}), make(chan struct{})
	o := options{
		noServe: true, dispatcher: dispatcher.Config{Partitions: 4}, queue: queue.Config{AckWait: 2 * time.Second},
		handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) { return "ran", nil },
			executor.WithVerify(func(ctx context.Context, _ executor.Call) (executor.Verdict, error) {
				close(verifying)
				<-ctx.Done()
				close(stopped)
				return executor.NotDone(), nil
			})),
	}
	s := start(t, o)
	taken := s.vanish(o)
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	<-taken
	s.executor(o)
	<-verifying
	require.NoError(t, s.api.Beta.Agents.Sessions.Events.New(t.Context(), id, cancelTurn()))
	select {
	case <-stopped:
	case <-time.After(patience):
		t.Fatal("the verify handler was not told")
	}
	s.awaitState(id, call.Cancelled)
	require.False(t, s.answers(id)["a"].Answered)
	s.clean()
}

func TestContract_CancelledWhileItIsParked(t *testing.T) {
	t.Parallel()
	o := options{
		noServe: true, dispatcher: dispatcher.Config{Partitions: 4}, queue: queue.Config{AckWait: 2 * time.Second},
		handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) { return "ran", nil },
			executor.WithOnUncertain(call.UncertainPark)),
	}
	s := start(t, o)
	taken := s.vanish(o)
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	<-taken
	s.executor(o)
	s.awaitState(id, call.Parked)
	require.NoError(t, s.api.Beta.Agents.Sessions.Events.New(t.Context(), id, cancelTurn()))
	s.awaitState(id, call.Cancelled)
	s.clean()
}

// TestContract_HealthyCallsPassFailingOnes: a hundred calls that fail for a technical reason wait for their next attempts
// at the dispatcher, and hold up no other call of the pool.
func TestContract_HealthyCallsPassFailingOnes(t *testing.T) {
	t.Parallel()
	var failed atomic.Int64
	s := start(t, options{executor: executor.Config{Concurrency: 2}, handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		if strings.HasPrefix(c.Key.Call, "healthy") {
			return "ok", nil
		}
		failed.Add(1)
		return nil, executor.Retry(errors.New("the third party is down"), 0)
	}, executor.WithAttempts(3), executor.WithBackoff(call.Backoff{Initial: call.Duration(time.Minute), Max: call.Duration(time.Minute)}))})
	var poison []scripted
	for _, c := range round(100) {
		poison = append(poison, scripted{Name: "f", CallID: "poison-" + c.CallID})
	}
	s.session(script("ok", poison), "f")
	require.Eventually(t, func() bool { return failed.Load() == 100 }, patience, time.Millisecond)
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "healthy"}}), "f")
	s.idle(id)
	require.True(t, s.answers(id)["healthy"].Success)
	require.EqualValues(t, 100, failed.Load(), "the others still wait")
}
