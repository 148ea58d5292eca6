package queue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestCallsTravelOutAndOutcomesBack(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	executor, puller := i.executor(t, "weather", "get_weather", "get_time")
	ctx := testContext(t)
	serving, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); answer(serving, executor, puller) }()
	t.Cleanup(func() { stop(); <-done })
	collected := i.collect(t)

	var dispatches []call.Dispatch
	for n := range 200 {
		function := []string{"get_weather", "get_time"}[n%2]
		dispatches = append(dispatches, i.dispatch(fmt.Sprintf("sess_%d", n%7), function, n, `{"n":1}`))
	}
	requireNoErrors(t, i.dispatcher.Publish(ctx, dispatches))
	require.Eventually(t, func() bool { return collected.count() == len(dispatches) }, patience, 10*time.Millisecond)
	for _, d := range dispatches {
		got := collected.of(d.Key)
		require.Len(t, got, 1)
		require.Equal(t, call.Success, got[0].Outcome.Kind)
		require.Equal(t, `[{"n":1}]`, string(got[0].Outcome.Output))
		require.Equal(t, d.Nonce, got[0].Outcome.Nonce)
		require.Equal(t, call.Token(d.Function), got[0].Token)
		require.Equal(t, 1, got[0].Deliveries)
	}
	require.Empty(t, collected.invalid)
	require.Eventually(t, func() bool {
		calls, err := i.dispatcher.js.Stream(ctx, "FN_CALLS")
		require.NoError(t, err)
		results, err := i.dispatcher.js.Stream(ctx, "FN_RESULTS")
		require.NoError(t, err)
		return calls.CachedInfo().State.Msgs == 0 && results.CachedInfo().State.Msgs == 0
	}, patience, 10*time.Millisecond, "acked messages leave both streams")
}
