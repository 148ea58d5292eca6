package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

// Cases from the field that need a dispatcher; others are in pkg/executor and
// cmd/executor under the same name, TestField_….

// byHand registers the functions of o, and gives calls to the test as to an executor.
func (s *stack) byHand(o options) (conn *queue.Conn, next func() *queue.Taken) {
	s.t.Helper()
	ex, err := executor.New(executor.Config{Pool: "test", Logger: s.log})
	require.NoError(s.t, err)
	o.handlers(ex)
	conn = s.connect(s.t.Context(), o, "by hand")
	s.t.Cleanup(conn.Close)
	binding, err := conn.Register(s.t.Context(), queue.Registration{Pool: "test", ID: "by hand", Language: "go", Functions: ex.Functions()})
	require.NoError(s.t, err)
	puller, err := conn.Bind(s.t.Context(), binding)
	require.NoError(s.t, err)
	s.t.Cleanup(puller.Close)
	return conn, func() (got *queue.Taken) {
		s.t.Helper()
		for deadline := time.Now().Add(patience); got == nil; {
			require.True(s.t, time.Now().Before(deadline), "no call came")
			_ = puller.Pull(s.t.Context(), 1, func(taken *queue.Taken) { got = taken })
		}
		return got
	}
}

// A result of attempt 1 arrives while attempt 2 runs: it is the one result, and attempt 2
// is told to stop.
func TestField_LateResultOfAttemptOneWhileAttemptTwoRuns(t *testing.T) {
	t.Parallel()
	for name, stubborn := range map[string]bool{"attempt 2 stops": false, "attempt 2 answers as well": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running, told := make(chan struct{}), make(chan time.Time, 1)
			o := options{
				noServe: true, dispatcher: dispatcher.Config{Partitions: 4},
				handlers: raw(t, "f", func(ctx context.Context, c executor.Call) (any, error) {
					if c.Attempt != 2 {
						return nil, fmt.Errorf("this is attempt %d", c.Attempt)
					}
					close(running)
					<-ctx.Done()
					told <- time.Now()
					return "second", context.Cause(ctx)
				}, executor.WithAttempts(2), executor.WithBackoff(call.Backoff{Initial: call.Duration(50 * time.Millisecond)})),
			}
			s := start(t, o)
			conn, next := s.byHand(o)
			id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
			report := func(d call.Dispatch, out call.Outcome) {
				out.Key, out.Nonce = d.Key, d.Nonce
				require.NoError(t, conn.Report(t.Context(), d, out))
			}
			first := next()
			report(first.Dispatch, call.Outcome{Kind: call.Retry, Reason: "the connection broke"})
			require.NoError(t, first.Ack())
			if stubborn { // one that no notice reaches
				second := next()
				require.Equal(t, 2, second.Dispatch.Attempt)
				report(first.Dispatch, call.Outcome{Kind: call.Success, Output: json.RawMessage(`"first"`)})
				s.idle(id)
				report(second.Dispatch, call.Outcome{Kind: call.Success, Output: json.RawMessage(`"second"`)})
				require.NoError(t, second.Ack())
			} else {
				s.executor(o)
				select {
				case <-running:
				case <-time.After(patience):
					t.Fatal("attempt 2 does not run")
				}
				late := time.Now()
				report(first.Dispatch, call.Outcome{Kind: call.Success, Output: json.RawMessage(`"first"`)})
				select {
				case at := <-told:
					require.Less(t, at.Sub(late), 5*time.Second, "2 s, and what a busy machine adds")
				case <-time.After(patience):
					t.Fatal("attempt 2 was not told")
				}
			}
			s.idle(id)
			s.settled(id)
			s.clean() // the second result, too, left the stream
			require.Equal(t, `"first"`, string(s.answers(id)["a"].Output))
			require.EqualValues(t, 1, s.sim.Stats().ResultsAccepted)
			require.Zero(t, s.sim.Stats().DuplicateSubmissions)
			require.Zero(t, s.sim.Stats().Conflicts)
		})
	}
}

// abandonments counts handlers that do not return.
type abandonments struct{ atomic.Int64 }

func (*abandonments) Started(string)           {}
func (*abandonments) Finished(executor.Finish) {}
func (a *abandonments) Abandoned(string)       { a.Add(1) }

// A handler never returns: the model is answered, the only slot goes to the next call,
// and the counter tells.
func TestField_HandlerThatNeverReturns(t *testing.T) {
	t.Parallel()
	forever := make(chan struct{})
	var counted abandonments
	s := start(t, options{noServe: true})
	ex, err := executor.New(executor.Config{
		Pool: "test", Concurrency: 1, Observer: &counted, Logger: s.log, Queue: queue.Config{URL: s.nats.URL()},
	})
	require.NoError(t, err)
	raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		if c.Key.Call == "never" {
			<-forever
		}
		return "ok", nil
	}, executor.WithTimeout(300*time.Millisecond))(ex)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-done:
			require.ErrorIs(t, err, executor.ErrHandlersLeft)
		case <-time.After(patience):
			t.Error("the executor did not stop")
		}
		close(forever)
	})
	require.Eventually(t, func() bool { return ex.Ready(ctx) == nil }, patience, 5*time.Millisecond)
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "never"}, {Name: "f", CallID: "other"}}), "f")
	s.idle(id)
	s.settled(id)
	require.Contains(t, string(s.answers(id)["never"].Error), "timed out after 300ms")
	require.True(t, s.answers(id)["other"].Success)
	require.Eventually(t, func() bool { return counted.Load() == 1 }, patience, 5*time.Millisecond)
	s.clean()
}

// One of 27 parallel calls fails: 26 real results and one error.
func TestField_OneOfTwentySevenParallelCallsFails(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	s := start(t, options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		runs.Add(1)
		if c.Key.Call == "call_013" {
			return nil, errors.New("customer 13 not found")
		}
		return "result of " + c.Key.Call, nil
	})})
	id := s.session(script("ok", round(27)), "f")
	s.idle(id)
	s.settled(id)
	answers := s.answers(id)
	require.Len(t, answers, 27)
	for callID, answer := range answers {
		if callID == "call_013" {
			require.False(t, answer.Success)
			require.Equal(t, `"customer 13 not found"`, string(answer.Error))
			continue
		}
		require.True(t, answer.Success, callID)
		require.Equal(t, quote("result of "+callID), string(answer.Output))
	}
	require.EqualValues(t, 27, runs.Load())
	require.Zero(t, s.sim.Stats().DuplicateSubmissions)
	s.clean()
}
