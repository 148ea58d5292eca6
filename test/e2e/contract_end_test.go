package e2e

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

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
	require.NoError(t, s.api.Beta.Agents.Sessions.Events.New(t.Context(), id, cancelTurn()))
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
	require.NoError(t, s.api.Beta.Agents.Sessions.Events.New(t.Context(), id, cancelTurn()))
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

// TestContract_CancelledWhileItWaitsForItsNextAttempt: nothing is tried again.
func TestContract_CancelledWhileItWaitsForItsNextAttempt(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	s := start(t, options{handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
		runs.Add(1)
		return nil, executor.Retry(errors.New("the third party is down"), 0)
	}, executor.WithAttempts(5), executor.WithBackoff(call.Backoff{Initial: call.Duration(2 * time.Second)}))})
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	s.awaitState(id, call.Retrying)
	require.NoError(t, s.api.Beta.Agents.Sessions.Events.New(t.Context(), id, cancelTurn()))
	s.awaitState(id, call.Cancelled)
	require.Never(t, func() bool { return runs.Load() > 1 }, 4*time.Second, 50*time.Millisecond)
	require.False(t, s.answers(id)["a"].Answered)
	s.clean()
}

// TestContract_SessionFails and the next one: whoever works on a call of the session is told, and its result is not sent.
func TestContract_SessionFails(t *testing.T) {
	t.Parallel()
	endsInACall(t, failed)
}

func TestContract_SessionIsDeletedInACall(t *testing.T) {
	t.Parallel()
	endsInACall(t, vanished)
}

// endsInACall has the API answer otherwise about a session while a handler runs.
func endsInACall(t *testing.T, otherwise func(id string) func(http.ResponseWriter, *http.Request, http.Handler) bool) {
	t.Helper()
	stopped := make(chan time.Time, 1)
	running := make(chan struct{}, 1)
	var api front
	s := start(t, options{front: api.wrap, handlers: raw(t, "f", func(ctx context.Context, _ executor.Call) (any, error) {
		running <- struct{}{}
		<-ctx.Done()
		stopped <- time.Now()
		return "too late", nil
	})})
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	<-running
	api.begin(otherwise(id))
	s.disp.Nudge(id, "test")
	ended := time.Now()
	select {
	case at := <-stopped:
		require.Less(t, at.Sub(ended), 10*time.Second, "a second look at the session, and what a busy machine adds")
	case <-time.After(patience):
		t.Fatal("the handler was not told")
	}
	s.awaitState(id, call.Cancelled)
	require.Zero(t, s.sim.Stats().ResultsAccepted)
	require.Eventually(t, func() bool { return s.left("FN_CALLS")+s.left("FN_RESULTS") == 0 }, patience, 20*time.Millisecond)
}

// cancelTurn is the event by which a user cancels the turn.
func cancelTurn() openai.BetaAgentSessionEventNewParams {
	return openai.BetaAgentSessionEventNewParams{
		Events: []openai.AgentSessionInputParamUnion{param.Override[openai.AgentSessionInputParamUnion](map[string]string{"type": "agent.session.input.cancel"})},
	}
}
