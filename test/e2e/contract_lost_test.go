package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

// vanish is an executor that takes one call, does what last says, and is never heard of again.
func (s *stack) vanish(o options, last ...func(*queue.Conn, *queue.Taken)) (taken <-chan struct{}) {
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
			_ = puller.Pull(s.t.Context(), 1, func(call *queue.Taken) {
				got = true
				for _, do := range last {
					do(conn, call)
				}
			})
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

func TestContract_ExecutorIsLost(t *testing.T) {
	t.Parallel()
	for effects, tc := range map[call.Effects]struct {
		runs int64
		text string
	}{
		call.EffectsNone:        {1, `"done"`},
		call.EffectsIdempotent:  {1, `"done"`},
		call.EffectsSideEffects: {0, "unknown"},
	} {
		t.Run(string(effects), func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			o := options{
				noServe: true,
				queue:   queue.Config{AckWait: 2 * time.Second},
				handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
					runs.Add(1)
					return "done", nil
				}, executor.WithEffects(effects)),
			}
			s := start(t, o)
			taken := s.vanish(o)
			id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
			<-taken
			s.executor(o)
			s.idle(id)
			s.settled(id)
			answer := s.answers(id)["a"]
			require.Equal(t, tc.runs == 1, answer.Success)
			require.Contains(t, string(answer.Output)+string(answer.Error), tc.text)
			require.Equal(t, tc.runs, runs.Load())
			s.clean()
		})
	}
}

// TestContract_LostAfterItsOutcome: an executor that reported and could not ack any more leaves a call that the next one
// is given again. It asks, and does not run it, whatever the function's policy.
func TestContract_LostAfterItsOutcome(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	o := options{noServe: true, queue: queue.Config{AckWait: 2 * time.Second}, handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
		runs.Add(1)
		return "once more", nil
	}, executor.WithEffects(call.EffectsIdempotent))}
	s := start(t, o)
	taken := s.vanish(o, func(conn *queue.Conn, taken *queue.Taken) {
		if err := conn.Report(t.Context(), taken.Dispatch, call.Outcome{Kind: call.Success, Output: []byte(`"the first"`)}); err != nil {
			t.Error(err)
		}
	})
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	<-taken
	s.executor(o)
	s.idle(id)
	s.settled(id)
	s.clean() // the message was taken off the queue
	require.Equal(t, `"the first"`, string(s.answers(id)["a"].Output))
	require.Zero(t, runs.Load())
}
