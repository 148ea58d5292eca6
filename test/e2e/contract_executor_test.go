package e2e

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// one has a session require one call of f and waits for the end of its turn.
func (s *stack) one(o ...string) simulator.Result {
	s.t.Helper()
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), append(o, "f")...)
	s.idle(id)
	s.settled(id)
	return s.answers(id)["a"]
}

func TestContract_HandlerReturnsAnError(t *testing.T) {
	t.Parallel()
	s := start(t, options{handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
		return nil, errors.New("customer 456 not found")
	})})
	answer := s.one()
	require.False(t, answer.Success)
	require.Equal(t, `"customer 456 not found"`, string(answer.Error))
	s.clean()
}

func TestContract_HandlerPanics(t *testing.T) {
	t.Parallel()
	s := start(t, options{handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) { panic("no") })})
	require.Equal(t, `"function crashed"`, string(s.one().Error))
	s.clean()
}

func TestContract_HandlerIsTooSlow(t *testing.T) {
	t.Parallel()
	s := start(t, options{handlers: raw(t, "f", func(ctx context.Context, _ executor.Call) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, executor.WithTimeout(200*time.Millisecond))})
	require.Contains(t, string(s.one().Error), "timed out after 200ms")
	s.clean()
}

func TestContract_TechnicalFailureIsRetried(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	o := options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		if runs.Add(1) < 3 {
			return nil, executor.Retry(errors.New("the third party is down"), 0)
		}
		return c.IdempotencyKey, nil
	}, executor.WithAttempts(3), executor.WithBackoff(call.Backoff{Initial: call.Duration(50 * time.Millisecond)}))}
	s := start(t, o)
	require.True(t, s.one().Success)
	require.EqualValues(t, 3, runs.Load())
	s.clean()
}

func TestContract_OutOfAttempts(t *testing.T) {
	t.Parallel()
	s := start(t, options{handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
		return nil, executor.Retry(errors.New("the third party is down"), 0)
	})})
	require.Contains(t, string(s.one().Error), "failed for a technical reason, attempt 1 of 1: the third party is down")
	s.clean()
}

func TestContract_UnknownFunctionIsAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, options{
		dispatcher: dispatcher.Config{UnknownAfter: 300 * time.Millisecond},
		handlers:   raw(t, "f", func(context.Context, executor.Call) (any, error) { return "ok", nil }),
	})
	id := s.session(script("ok", []scripted{{Name: "nobody", CallID: "a"}, {Name: "f", CallID: "b"}}), "f", "nobody")
	s.idle(id)
	got := s.answers(id)
	require.Equal(t, `"no executor is available for nobody"`, string(got["a"].Error))
	require.True(t, got["b"].Success)
}

func TestContract_CallWaitsForItsExecutor(t *testing.T) {
	t.Parallel()
	o := options{noServe: true, handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) { return "late but well", nil })}
	s := start(t, o)
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	require.Eventually(t, func() bool {
		recs, err := s.store.Session(t.Context(), id)
		return err == nil && len(recs) == 1 && recs[0].State == call.Held
	}, patience, 5*time.Millisecond)
	s.executor(o)
	s.idle(id)
	require.Equal(t, `"late but well"`, string(s.answers(id)["a"].Output))
}
