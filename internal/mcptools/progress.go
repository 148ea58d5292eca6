package mcptools

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callfan/callfan/pkg/executor"
)

// progress remembers the calls whose progress a server may tell about.
type progress struct {
	last  atomic.Int64
	calls sync.Map // token → executor.Call
}

// begin gives the call's token; forget is to be called once it has ended.
func (p *progress) begin(call executor.Call) (token string, forget func()) {
	token = strconv.FormatInt(p.last.Add(1), 10)
	p.calls.Store(token, call)
	return token, func() { p.calls.Delete(token) }
}

// progressed logs how far a call is. The server's own message stays out: it may quote
// arguments.
func (c *Client) progressed(ctx context.Context, params *mcp.ProgressNotificationParams) {
	found, ok := c.running.calls.Load(params.ProgressToken)
	if !ok {
		return
	}
	call := found.(executor.Call)
	c.log.DebugContext(ctx, "a tool tells its progress", "session_id", call.Session, "turn_id", call.Turn, "call_id", call.Key.Call,
		"function", call.Function, "attempt", call.Attempt, "progress", params.Progress, "total", params.Total)
}
