package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

func TestContract_LateResultIsKeptAsEvidence(t *testing.T) {
	t.Parallel()
	o := options{
		noServe:    true,
		dispatcher: dispatcher.Config{Partitions: 4},
		handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) { return "", nil },
			executor.WithTimeout(100*time.Millisecond), executor.WithQueueTimeout(100*time.Millisecond),
			executor.WithTotalDeadline(500*time.Millisecond)),
	}
	s := start(t, o)
	conn := s.connect(t.Context(), o, "slow")
	defer conn.Close()
	ex, err := executor.New(executor.Config{Pool: "test", Logger: s.log})
	require.NoError(t, err)
	o.handlers(ex)
	binding, err := conn.Register(t.Context(), queue.Registration{Pool: "test", ID: "slow", Language: "go", Functions: ex.Functions()})
	require.NoError(t, err)
	puller, err := conn.Bind(t.Context(), binding)
	require.NoError(t, err)
	taken := make(chan *queue.Taken, 1)
	pulling := make(chan error, 1)
	go func() { pulling <- puller.Pull(t.Context(), 1, func(c *queue.Taken) { taken <- c }) }()

	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	slow := <-taken
	require.NoError(t, <-pulling)
	s.idle(id)
	s.settled(id)
	require.Contains(t, string(s.answers(id)["a"].Error), "it is unknown whether it took effect")

	require.NoError(t, conn.Report(t.Context(), slow.Dispatch, call.Outcome{Kind: call.Success, Output: []byte(`"paid"`)}))
	require.NoError(t, slow.Ack())
	require.Eventually(t, func() bool {
		letters, err := conn.DeadLetters(t.Context(), "f", 10)
		return err == nil && len(letters) == 1 && letters[0].Reason == dispatcher.EventLateResult
	}, patience, 10*time.Millisecond)
	require.Equal(t, 1, s.count.of(dispatcher.EventLateResult))
	require.EqualValues(t, 1, s.sim.Stats().ResultsAccepted, "it is not sent")
	s.clean()
}

func TestContract_NobodyTakesTheCall(t *testing.T) {
	t.Parallel()
	o := options{
		noServe:    true,
		dispatcher: dispatcher.Config{Partitions: 4},
		handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) { return "", nil },
			executor.WithTimeout(time.Hour), executor.WithQueueTimeout(500*time.Millisecond)),
	}
	s := start(t, o)
	s.executor(o)() // registers and goes
	require.Equal(t, `"no executor is available for f"`, string(s.one().Error))
	require.Equal(t, 1, s.count.of(dispatcher.EventWithdrawn))
	s.clean()
}
