package runs_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

// A conversation keeps what a request adds, so a request whose answer was lost is made again
// only where the conversation shows that it was not taken.
func TestARequestToAConversationIsNotMadeTwice(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		taken  bool
		status runs.Status
		reason string
		asked  int
	}{
		"taken":     {taken: true, status: runs.Failed, reason: runs.ReasonUncertain, asked: 1},
		"not taken": {status: runs.Completed, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := &scripted{}
			model.items = []json.RawMessage{json.RawMessage(`{"id":"item_0"}`)}
			model.play = func(n int, _ request) reply {
				if n > 1 {
					return completed(said("hello"))
				}
				if tc.taken {
					model.mu.Lock()
					model.items = append([]json.RawMessage{json.RawMessage(`{"id":"item_1"}`)}, model.items...)
					model.mu.Unlock()
				}
				return reply{err: &call.Refusal{Class: call.RefusedBusy, Err: errors.New("the connection broke")}}
			}
			r := newRig(t, model, echo)
			run := r.end(r.begin(`{"model":"m","input":"x","conversation":"conv_1"}`))
			require.Equal(t, tc.status, run.Status, run.Error)
			require.Equal(t, tc.reason, run.Reason)
			require.Len(t, model.requests(), tc.asked)
		})
	}
}
