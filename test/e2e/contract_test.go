package e2e

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
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

func TestContract_RetriesOutliveTheDispatcher(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	o := options{
		dispatcher: dispatcher.Config{LeaseTTL: time.Second, Partitions: 4},
		handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
			if runs.Add(1) == 1 {
				return nil, executor.Retry(errors.New("the third party is down"), 0)
			}
			return "ok", nil
		}, executor.WithAttempts(2), executor.WithBackoff(call.Backoff{Initial: call.Duration(3 * time.Second)})),
	}
	s := start(t, o)
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	require.Eventually(t, func() bool {
		recs, err := s.store.Session(t.Context(), id)
		return err == nil && len(recs) == 1 && recs[0].State == call.Retrying
	}, patience, 5*time.Millisecond)
	s.stopOne()
	s.disp = s.dispatcher(o, "two")
	s.idle(id)
	require.True(t, s.answers(id)["a"].Success)
	require.EqualValues(t, 2, runs.Load())
	s.settled(id)
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

func TestContract_TurnIsCancelled(t *testing.T) {
	t.Parallel()
	stopped := make(chan time.Time, 1)
	running := make(chan struct{}, 1)
	s := start(t, options{handlers: raw(t, "f", func(ctx context.Context, _ executor.Call) (any, error) {
		running <- struct{}{}
		<-ctx.Done()
		stopped <- time.Now()
		return "too late", nil
	})})
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	<-running
	cancelled := time.Now()
	require.NoError(t, s.api.Beta.Agents.Sessions.Events.New(t.Context(), id, openai.BetaAgentSessionEventNewParams{
		Events: []openai.AgentSessionInputParamUnion{param.Override[openai.AgentSessionInputParamUnion](map[string]string{"type": "agent.session.input.cancel"})},
	}))
	select {
	case at := <-stopped:
		require.Less(t, at.Sub(cancelled), 5*time.Second, "2 s, and what a busy machine adds")
	case <-time.After(patience):
		t.Fatal("the handler was not told")
	}
	s.settled(id)
	recs, err := s.store.Session(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, call.Cancelled, recs[0].State)
	require.False(t, s.answers(id)["a"].Answered)
	s.clean()
}

func TestContract_CancelledInTheQueue(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	release := make(chan struct{})
	o := options{executor: executor.Config{Concurrency: 1}, handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		runs.Add(1)
		if c.Key.Call == "blocker" {
			<-release
		}
		return "ok", nil
	})}
	s := start(t, o)
	blocker := s.session(script("ok", []scripted{{Name: "f", CallID: "blocker"}}), "f")
	require.Eventually(t, func() bool { return runs.Load() == 1 }, patience, time.Millisecond)
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	require.Eventually(t, func() bool {
		recs, err := s.store.Session(t.Context(), id)
		return err == nil && len(recs) == 1
	}, patience, 5*time.Millisecond)
	require.NoError(t, s.api.Beta.Agents.Sessions.Events.New(t.Context(), id, openai.BetaAgentSessionEventNewParams{
		Events: []openai.AgentSessionInputParamUnion{param.Override[openai.AgentSessionInputParamUnion](map[string]string{"type": "agent.session.input.cancel"})},
	}))
	s.settled(id)
	close(release)
	s.idle(blocker)
	s.settled(blocker)
	s.clean() // the cancelled call left the queue
	require.False(t, s.answers(id)["a"].Answered)
}

func TestContract_SessionIsDeleted(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	s := start(t, options{handlers: echo(t, &runs)})
	id := s.session(script("ok", round(2)), "f")
	s.idle(id)
	s.settled(id)
	_, err := s.api.Beta.Agents.Sessions.Delete(t.Context(), id)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(s.disp.Sessions()) == 0 }, patience, 10*time.Millisecond, "nobody watches it any more")
}

func TestContract_RedisLosesItsData(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	release := make(chan struct{})
	s := start(t, options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		runs.Add(1)
		<-release
		return c.Key.Call, nil
	})})
	id := s.session(script("ok", round(8), []scripted{{Name: "f", CallID: "last"}}), "f")
	require.Eventually(t, func() bool { return runs.Load() == 8 }, patience, time.Millisecond)
	opt, err := redis.ParseURL(s.redis.URL())
	require.NoError(t, err)
	client := redis.NewClient(opt)
	defer client.Close()
	require.NoError(t, client.FlushAll(t.Context()).Err())
	close(release)
	// Who is watched is lost as well: what callfan rebuilds is what the API and the
	// streams still say. The session's goroutine lives on in this replica.
	require.NoError(t, s.disp.Attach(t.Context(), id))
	s.idle(id)
	s.settled(id)
	require.EqualValues(t, 9, runs.Load(), "no call ran twice")
	require.EqualValues(t, 9, s.sim.Stats().ResultsAccepted)
	require.Zero(t, s.sim.Stats().Conflicts)
	s.clean()
}

// vanish is an executor that takes one call and is never heard of again.
func (s *stack) vanish(o options) (taken <-chan struct{}) {
	s.t.Helper()
	ex, err := executor.New(executor.Config{Pool: "test", Logger: s.log})
	require.NoError(s.t, err)
	o.handlers(ex)
	conn := s.connect(s.t.Context(), o, "vanishing")
	binding, err := conn.Register(s.t.Context(), queue.Registration{Pool: "test", ID: "vanishing", Language: "go", Functions: ex.Functions()})
	require.NoError(s.t, err)
	puller, err := conn.Bind(s.t.Context(), binding)
	require.NoError(s.t, err)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer conn.Close()
		for got := false; !got && s.t.Context().Err() == nil; {
			_ = puller.Pull(s.t.Context(), 1, func(*queue.Taken) { got = true })
		}
	}()
	return gone
}

func TestContract_UncertainCallIsVerified(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		verdict func() (executor.Verdict, error)
		runs    int64
		success bool
		text    string
	}{
		"done":        {func() (executor.Verdict, error) { return executor.Done("paid before"), nil }, 0, true, `"paid before"`},
		"not done":    {func() (executor.Verdict, error) { return executor.NotDone(), nil }, 1, true, `"paid now"`},
		"cannot tell": {func() (executor.Verdict, error) { return executor.CannotTell("the bank does not answer"), nil }, 0, false, "may have taken effect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			o := options{
				noServe:    true,
				dispatcher: dispatcher.Config{Partitions: 4},
				queue:      queue.Config{AckWait: 2 * time.Second},
				handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
					runs.Add(1)
					return "paid now", nil
				}, executor.WithVerify(func(context.Context, executor.Call) (executor.Verdict, error) { return tc.verdict() })),
			}
			s := start(t, o)
			taken := s.vanish(o)
			id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
			<-taken
			s.executor(o)
			s.idle(id)
			s.settled(id)
			answer := s.answers(id)["a"]
			require.Equal(t, tc.success, answer.Success)
			require.Contains(t, string(answer.Output)+string(answer.Error), tc.text)
			require.Equal(t, tc.runs, runs.Load())
			s.clean()
		})
	}
}
