package executor_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// Cases from the field. The least lease that callfan takes is 1 s, so a handler of 0.3 s
// and a lease of 0.5 s are twice as long here; fieldbubble_test.go has those very times.

func TestField_TwoExecutorsShareTenCalls(t *testing.T) {
	t.Parallel()
	i := install(t)
	var byOne, byTwo atomic.Int64
	i.run(executor.Config{Concurrency: 1, ID: "one"}, sleeper(600*time.Millisecond, &byOne))
	i.run(executor.Config{Concurrency: 1, ID: "two"}, sleeper(600*time.Millisecond, &byTwo))
	require.Eventually(t, func() bool { return i.consumer().NumWaiting == 2 }, 20*time.Second, 5*time.Millisecond, "both pull")
	var calls []call.Dispatch
	for n := range 10 {
		calls = append(calls, newCall("sleep", n, `{}`))
	}
	i.dispatch(calls...)
	by := map[string]int64{}
	for _, o := range i.await(10) {
		require.Equal(t, call.Success, o.Kind)
		by[o.Executor]++
	}
	i.awaitEmpty()
	require.EqualValues(t, 10, byOne.Load()+byTwo.Load())
	require.Positive(t, byOne.Load())
	require.Positive(t, byTwo.Load())
	require.Equal(t, map[string]int64{"one": byOne.Load(), "two": byTwo.Load()}, by, "outcomes name who ran the call")
}

func TestField_HandlerOfThreeLeasesRunsOnce(t *testing.T) {
	t.Parallel()
	i := install(t)
	var runs atomic.Int64
	i.run(executor.Config{}, sleeper(3500*time.Millisecond, &runs))
	i.run(executor.Config{}, sleeper(3500*time.Millisecond, &runs))
	i.dispatch(newCall("sleep", 1, `{}`))
	require.Equal(t, call.Success, i.await(1)[0].Kind)
	i.awaitEmpty()
	require.EqualValues(t, 1, runs.Load())
}

func TestField_NATSRestartsBetweenPublishAndDelivery(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		away   func(i *installation)
		pulled bool // an executor waits for calls when the server goes
	}{
		"stopped, nobody pulls": {away: func(i *installation) { i.server.Stop() }},
		"killed, nobody pulls":  {away: func(i *installation) { i.server.Kill() }},
		"killed while pulled":   {away: func(i *installation) { i.server.Kill() }, pulled: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t)
			var runs atomic.Int64
			add := sleeper(time.Millisecond, &runs)
			first := i.run(executor.Config{}, add)
			require.Eventually(t, func() bool { return first.Ready(t.Context()) == nil }, 20*time.Second, 5*time.Millisecond)
			if !tt.pulled {
				first.stop()
				require.NoError(t, <-first.done)
				i.dispatch(newCall("sleep", 1, `{}`), newCall("sleep", 2, `{}`), newCall("sleep", 3, `{}`))
			}
			tt.away(i)
			i.server.Start()
			if tt.pulled {
				i.dispatch(newCall("sleep", 1, `{}`), newCall("sleep", 2, `{}`), newCall("sleep", 3, `{}`))
			} else {
				require.EqualValues(t, 3, i.left(), "the calls outlived the restart")
				i.run(executor.Config{}, add)
			}
			for _, o := range i.await(3) {
				require.Equal(t, call.Success, o.Kind)
			}
			i.awaitEmpty()
			require.EqualValues(t, 3, runs.Load())
		})
	}
}
