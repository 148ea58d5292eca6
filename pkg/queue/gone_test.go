package queue

import (
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
