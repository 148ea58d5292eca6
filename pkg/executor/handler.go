package executor

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Call is one attempt of a call as its handler sees it.
type Call struct {
	call.Key
	// Function is the name as the model gave it.
	Function string
	// Arguments are the very bytes that the API sent.
	Arguments json.RawMessage
	// Attempt counts from 1.
	Attempt int
	// IdempotencyKey is the same for every attempt of the call. Pass it to
	// downstreams that know such keys.
	IdempotencyKey string
	// Deadline is when the handler's context ends.
	Deadline time.Time
	// Uncertain says that an earlier attempt may have run, wholly or in part.
	Uncertain bool
	// Traceparent is the W3C trace context, empty without tracing.
	Traceparent string
}

// Handler runs one call. Its context ends at the call's deadline, when the call is
// cancelled, and at the executor's hard stop; context.Cause tells which.
type Handler func(ctx context.Context, c Call) (Output, error)

// Middleware wraps a handler. What it returns is what is reported, so that a
// middleware may answer without calling next. A panic in it counts as the
// handler's. The arguments are not decoded yet when a middleware runs.
type Middleware func(next Handler) Handler

type callKey struct{}

// FromContext gives the call that ctx belongs to, and false outside a handler.
func FromContext(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(Call)
	return c, ok
}

func withCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}
