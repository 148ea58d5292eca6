package queue

import (
	"context"

	"github.com/callfan/callfan/pkg/call"
)

// Report publishes what an attempt came to and returns once it is stored; only
// then may the call be acked. The key and the nonce are those of the dispatch; the
// outcome's own are ignored. A repeated outcome is stored once. When NATS does not
// answer or the stream is full, it goes on for Config.RetryFor at most.
//
// Errors wrap ErrInvalidOutcome, ErrTooLarge or ErrPermission, all final, or
// ErrBacklogFull, ErrUnavailable or the cause of ctx's end: the call must not be
// acked then.
func (c *Conn) Report(ctx context.Context, d call.Dispatch, o call.Outcome) error {
	msg, err := c.names.encodeOutcome(&d, &o)
	if err != nil {
		return err
	}
	if err := c.checkSize("outcome", msg); err != nil {
		return err
	}
	burst := []publication{{msg: msg, err: &err}}
	c.publishAll(ctx, "outcome", burst, true)
	return err
}
