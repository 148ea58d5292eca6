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

func TestContract_ParkedCallIsDecidedByAnOperator(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		decision dispatcher.Decision
		runs     int64
		success  bool
		text     string
	}{
		"answered": {dispatcher.Decision{Result: call.Result{Success: true, Output: []byte(`"paid before"`)}}, 0, true, `"paid before"`},
		"failed":   {dispatcher.Decision{Result: call.Result{Error: "not paid"}}, 0, false, `"not paid"`},
		"rerun":    {dispatcher.Decision{Rerun: true, By: "ann"}, 1, true, `"paid now"`},
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
				}, executor.WithOnUncertain(call.UncertainPark)),
			}
			s := start(t, o)
			taken := s.vanish(o)
			id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
			<-taken
			s.executor(o)
			parked := func() *call.Key {
				recs, err := s.store.Session(t.Context(), id)
				if err != nil || len(recs) != 1 || recs[0].State != call.Parked {
					return nil
				}
				return &recs[0].Key
			}
			require.Eventually(t, func() bool { return parked() != nil }, patience, 10*time.Millisecond)
			require.NoError(t, s.disp.Decide(t.Context(), *parked(), tc.decision))
			s.idle(id)
			s.settled(id)
			answer := s.answers(id)["a"]
			require.Equal(t, tc.success, answer.Success)
			require.Equal(t, tc.text, string(answer.Output)+string(answer.Error))
			require.Equal(t, tc.runs, runs.Load())
			s.clean()
		})
	}
}
