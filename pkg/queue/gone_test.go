package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// A dispatcher that publishes what another one did before is told whether somebody can still be given the call.
func TestPublishSaysThatAHandOverIsOver(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	ds := []call.Dispatch{i.dispatch("s", "f", 1, `{}`), i.dispatch("s", "f", 2, `{}`)}
	requireNoErrors(t, i.dispatcher.Publish(ctx, ds))
	requireNoErrors(t, i.dispatcher.Publish(ctx, ds))
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { require.NoError(t, taken.Ack()) }))
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 1 }, patience, 10*time.Millisecond)
	errs := i.dispatcher.Publish(ctx, ds)
	require.True(t, i.dispatcher.Gone(errs[0]))
	require.NoError(t, errs[1])
	require.EqualValues(t, 1, i.messages(t, "FN_CALLS"), "it was stored once")
}

// A try that was stored and not confirmed may have been run and acked before the next one: a server that was restarted
// in between would store it as a new call.
func TestWhatAnEarlierTryEndedIsNotPublishedAgain(t *testing.T) {
	t.Parallel()
	answers := func(over bool, err error) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) { return over, err }
	}
	errs := make([]error, 5)
	burst := []publication{
		{err: &errs[0], over: answers(false, nil)},
		{err: &errs[1], over: answers(true, nil)},
		{err: &errs[2]},
		{err: &errs[3], over: answers(false, errors.New("no answer"))},
		{err: &errs[4], over: func(context.Context) (bool, error) { panic("asked in vain") }},
	}
	left := new(Conn).notOver(testContext(t), burst)
	require.Len(t, left, 4)
	require.ErrorIs(t, errs[1], ErrGone)
	require.Same(t, &errs[4], left[3].err)
}
