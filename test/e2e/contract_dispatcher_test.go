package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

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

// TestContract_ReplicasShareAndTakeOver: two replicas share the sessions; when one leaves, the
// other goes on with all of them.
func TestContract_ReplicasShareAndTakeOver(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	o := options{dispatcher: dispatcher.Config{LeaseTTL: time.Second, Partitions: 4}, handlers: echo(t, &runs)}
	s := start(t, o)
	second := s.dispatcher(o, "two")
	require.Eventually(t, func() bool { return second.Owned() > 0 && s.disp.Owned()+second.Owned() == 4 }, patience, 10*time.Millisecond)
	var ids []string
	for range 8 {
		ids = append(ids, s.session(script("ok", round(4)), "f"))
	}
	for _, id := range ids {
		s.idle(id)
	}
	s.settled(ids...)
	require.EqualValues(t, 8*4, runs.Load())
	require.Zero(t, s.sim.Stats().Conflicts)
	// The first leaves in the middle of a turn of the others.
	for _, id := range ids {
		require.NoError(t, s.api.Beta.Agents.Sessions.Events.New(t.Context(), id, openai.BetaAgentSessionEventNewParams{
			Events: []openai.AgentSessionInputParamUnion{message(script("ok", round(16)))},
		}))
	}
	s.stopOne()
	require.Eventually(t, func() bool { return second.Owned() == 4 }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return s.sim.Stats().ResultsAccepted == 8*20 }, patience, 10*time.Millisecond)
	for _, id := range ids {
		s.idle(id)
	}
	s.settled(ids...)
	require.EqualValues(t, 8*20, runs.Load())
	require.Zero(t, s.sim.Stats().Conflicts)
	s.clean()
}

// TestContract_DispatcherIsKilledInTheMiddleOfATurn has two replicas share sessions, kills one, and sees the other finish all
// turns with every function run once.
func TestContract_DispatcherIsKilledInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	i := install(t)
	const sessions, calls, rounds = 8, 4, 3
	args := []string{"--select", "metadata.dispatch=nats"}
	first, second := i.dispatch("fn", args...), i.dispatch("fn", args...)
	executor := i.execute("fn")
	executor.Await(executor.Stderr, "executor serves")
	first.awaitReady(t)
	second.awaitReady(t)

	var ids []string
	for s := range sessions {
		text := `{"say":"done","rounds":[`
		for r := range rounds {
			for c := range calls {
				text += fmt.Sprintf(`%s{"name":"slow","arguments":{},"call_id":"s%d_r%d_c%d"}`, separator(r, c), s, r, c)
			}
		}
		session, err := i.api.Beta.Agents.Sessions.New(t.Context(), params(text+`]]}`, map[string]string{"dispatch": "nats"}))
		require.NoError(t, err)
		ids = append(ids, session.ID)
	}
	require.Eventually(t, func() bool { return i.stats().ResultsAccepted >= sessions*calls/2 }, patience, 5*time.Millisecond)
	first.Kill()
	killed := time.Now()
	require.Less(t, i.stats().ResultsAccepted, int64(sessions*calls*rounds), "it was killed in the middle")
	for _, id := range ids {
		i.awaitIdle(id)
	}
	t.Logf("all turns were complete %s after the kill", time.Since(killed).Round(10*time.Millisecond))
	require.Less(t, time.Since(killed), 20*time.Second, "the lease is 2 s, that of results 5 s, and a call that was not yet published waits for it")

	stats := i.stats()
	require.EqualValues(t, sessions*calls*rounds, stats.ResultsAccepted)
	require.Zero(t, stats.Conflicts)
	require.Zero(t, stats.Pending)
	ran := i.ran()
	slices.Sort(ran)
	require.Len(t, ran, sessions*calls*rounds, "every call runs once")
	require.Len(t, slices.Compact(ran), sessions*calls*rounds)
	i.awaitEmptyStreams() // results that the killed one had saved and not acked come again
	require.Equal(t, 0, executor.Stop())
	require.Equal(t, 0, second.Stop())
}

// separator opens a round or goes on with it.
func separator(round, call int) string {
	switch {
	case call > 0:
		return ","
	case round > 0:
		return "],["
	}
	return "["
}
