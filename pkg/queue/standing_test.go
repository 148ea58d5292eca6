package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// holding takes every outcome of a session's partition and never acks one, as a
// dispatcher that died. It gives what it took.
func (i *installation) holding(t *testing.T, session string) <-chan call.Delivered {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	taken, done := make(chan call.Delivered, 1000), make(chan struct{})
	go func() {
		defer close(done)
		_ = i.dispatcher.Consume(ctx, call.Partition(session, i.cfg.Partitions), func(batch []call.Delivered) {
			for _, d := range batch {
				taken <- d
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return taken
}

// answering answers look-ups with what standing holds.
func (i *installation) answering(t *testing.T, standing *atomic.Value) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	require.NoError(t, i.dispatcher.ServeOutcomes(ctx, func(context.Context, call.Question) (call.Standing, error) {
		switch s := standing.Load().(type) {
		case call.Standing:
			return s, nil
		case func() call.Standing:
			return s(), nil
		default:
			return "", errors.New("no answer was set")
		}
	}))
}

func TestAnOutcomeThatADeadDispatcherHoldsCounts(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2})
	executor, _ := i.executor(t, "p", "my function", "g")
	var says atomic.Value
	i.answering(t, &says)
	held := i.holding(t, "sess_1")
	ask := func(d call.Dispatch, want call.Standing, why string) {
		t.Helper()
		got, err := executor.Lookup(testContext(t), d)
		require.NoError(t, err, why)
		require.Equal(t, want, got, why)
	}
	for n, o := range []call.Outcome{
		{Kind: call.Success, Output: []byte(`"x"`)},
		{Kind: call.Failure, Error: "x"},
		{Kind: call.Retry, Reason: "x"},
		{Kind: call.Uncertain, Reason: "x"},
		{Kind: call.Deferred},
	} {
		d, other := i.dispatch("sess_1", "my function", n, `{}`), i.dispatch("sess_1", "my function", 100+n, `{}`)
		says.Store(call.StandingPending)
		ask(d, call.StandingPending, "before")
		require.NoError(t, executor.Report(testContext(t), d, o))
		require.Equal(t, o.Kind, (<-held).Outcome.Kind)
		for _, s := range []call.Standing{call.StandingPending, call.StandingUnknown, call.StandingAnswered} {
			says.Store(s)
			ask(d, call.StandingAnswered, string(o.Kind)+", "+string(s))
		}
		says.Store(call.StandingCancelled)
		ask(d, call.StandingCancelled, string(o.Kind))
		says.Store(call.StandingPending)
		ask(other, call.StandingPending, "another call")
		d.Attempt, d.Nonce = 2, i.nonces.For(d.Key, call.Token(d.Function), 2)
		ask(d, call.StandingPending, "the next attempt")
		require.True(t, i.reportedOf(t, d), "%s, of whichever attempt", o.Kind)
		require.False(t, i.reportedOf(t, other), "another call")
	}
}

func (i *installation) reportedOf(t *testing.T, d call.Dispatch) bool {
	t.Helper()
	genuine := func(o call.Outcome) bool {
		_, ok := i.nonces.Check(o.Key, call.Token(d.Function), o.Nonce)
		return ok && o.Kind != call.Released
	}
	reported, err := i.dispatcher.Reported(testContext(t), d, genuine)
	require.NoError(t, err)
	forged, err := i.dispatcher.Reported(testContext(t), d, func(call.Outcome) bool { return false })
	require.NoError(t, err)
	require.False(t, forged)
	return reported
}

func TestAReleaseEndsItsOwnHandOverOnly(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2})
	executor, _ := i.executor(t, "p", "f")
	var says atomic.Value
	says.Store(call.StandingPending)
	i.answering(t, &says)
	held := i.holding(t, "sess_1")
	d := i.dispatch("sess_1", "f", 1, `{}`)
	d.Handover = 1
	require.NoError(t, executor.Report(testContext(t), d, call.Outcome{Kind: call.Released}))
	<-held
	for handover, want := range map[int]call.Standing{1: call.StandingAnswered, 2: call.StandingPending, 11: call.StandingPending, 0: call.StandingPending} {
		d.Handover = handover
		got, err := executor.Lookup(testContext(t), d)
		require.NoError(t, err)
		require.Equal(t, want, got, "hand-over %d", handover)
	}
	require.False(t, i.reportedOf(t, d), "a call that was given back has no result")
	given, err := i.dispatcher.Reported(testContext(t), d, func(o call.Outcome) bool { return o.Kind == call.Released })
	require.NoError(t, err)
	require.True(t, given, "but for who asks for that")
}

// An outcome that is saved and acked between the two looks is in neither of them.
func TestAnOutcomeSavedDuringTheQuestionCounts(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2})
	executor, _ := i.executor(t, "p", "f")
	var says atomic.Value
	var asked atomic.Int32
	says.Store(func() call.Standing {
		if asked.Add(1) == 1 {
			return call.StandingPending
		}
		return call.StandingAnswered
	})
	i.answering(t, &says)
	got, err := executor.Lookup(testContext(t), i.dispatch("sess_1", "f", 1, `{}`))
	require.NoError(t, err)
	require.Equal(t, call.StandingAnswered, got)
}

func TestTheSearchForAnOutcomeIsBounded(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 1})
	ctx := testContext(t)
	d := i.dispatch("sess_1", "f", 1, `{}`)
	burst := make([]publication, maxSearched+1)
	errs := make([]error, len(burst))
	for n := range burst {
		other := i.dispatch("sess_1", "f", n+2, `{}`)
		msg, err := i.dispatcher.names.encodeOutcome(&other, &call.Outcome{Kind: call.Failure, Error: fmt.Sprint(n)})
		require.NoError(t, err)
		burst[n] = publication{msg: msg, err: &errs[n]}
	}
	i.dispatcher.publishAll(ctx, "outcome", burst, false)
	requireNoErrors(t, errs)
	q := call.Question{Key: d.Key, Token: "f", Nonce: d.Nonce, Handover: 1}
	began := time.Now()
	_, err := i.dispatcher.reported(ctx, q)
	require.ErrorContains(t, err, "messages wait on fn.result.f.p00")
	t.Logf("looking through %d outcomes took %v", maxSearched, time.Since(began))
	q.Token = "g"
	found, err := i.dispatcher.reported(ctx, q)
	require.NoError(t, err)
	require.False(t, found)
}

func TestAStoredHandOverIsFound(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ds := i.publish(t, i.dispatch("sess_1", "f", 1, `{}`), i.dispatch("sess_1", "f", 2, `{}`))
	for _, d := range ds {
		at, err := i.dispatcher.Stored(testContext(t), call.Dispatch{Call: d.Call})
		require.NoError(t, err)
		require.Equal(t, d.Sequence, at)
	}
	at, err := i.dispatcher.Stored(testContext(t), i.dispatch("sess_1", "f", 3, `{}`))
	require.NoError(t, err)
	require.Zero(t, at)
}
