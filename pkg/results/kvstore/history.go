package kvstore

import (
	"time"

	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/internal/history"
)

// maxHistories is how many bytes of steps the calls of one turn keep together. The
// turn is one message, written anew at each change, and must stay well below the
// server's max_payload (1 MiB by default) with a thousand calls.
const maxHistories = 128 << 10

// step appends what is true of the call now to its history.
func (c *entryOfCall) step(now int64, note string) {
	after := time.Duration(now-c.claimed) * time.Millisecond
	c.history = history.Cut(history.Append(c.history, c.state, after, c.attempt, c.handover, note), history.Max)
}

// steps reads the call's history.
func (c *entryOfCall) steps() []results.Step {
	return history.Parse(string(c.history), time.UnixMilli(c.claimed))
}

// boundHistories leaves out steps until the turn has no more than it may.
func (t *turn) boundHistories() {
	total := 0
	for _, c := range t.calls {
		total += len(c.history)
	}
	if total <= maxHistories {
		return
	}
	for _, c := range t.calls {
		c.history = history.Cut(c.history, maxHistories/len(t.calls))
	}
}
