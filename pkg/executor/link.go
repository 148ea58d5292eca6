package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// link is what a running executor needs of the queue.
type link interface {
	// Register declares the functions and gives the pool's binding. It waits while
	// no dispatcher answers; an error is a refusal or the end of ctx.
	Register(ctx context.Context, functions []call.Function) (binding, error)
	// Report publishes the outcome and waits until the stream stored it.
	Report(ctx context.Context, d call.Dispatch, o call.Outcome) error
	// Lookup asks a dispatcher about the call.
	Lookup(ctx context.Context, d call.Dispatch) (call.Standing, error)
	// OnCancel calls f when a call of one of the functions is cancelled.
	OnCancel(functions []call.Function, f func(k call.Key, reason string)) (stop func(), err error)
	// Ready says whether the queue answers.
	Ready(ctx context.Context) error
	// Close ends the connection after what was sent has left.
	Close() error
}

// binding is the pool's consumer.
type binding struct {
	puller  puller
	ackWait time.Duration // the lease of a delivered call
	refresh time.Duration // when to register again
}

type puller interface {
	// Pull asks for up to n calls and hands each over as it arrives. It returns when
	// the request is used up or expired, or ctx ended.
	Pull(ctx context.Context, n int, each func(taken)) error
}

// taken is a delivered call.
type taken interface {
	Dispatch() call.Dispatch
	Deliveries() int
	// Transit is the longest that it may have been on its way.
	Transit() time.Duration
	// Invalid says why the message is not a call, nil when it is one.
	Invalid() error
	// InProgress starts the lease again.
	InProgress() error
	// Ack removes the call from the stream.
	Ack() error
	// Term removes a message that is no call; the server keeps the reason.
	Term(reason string) error
}

// tooLargeError is wrapped by Report when the outcome is larger than the server
// takes; its text is for the model.
type tooLargeError struct{ size, limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("result too large (%d bytes, limit %d)", e.size, e.limit)
}

// errInvalidOutcome is wrapped by Report when the outcome cannot be put on the wire.
var errInvalidOutcome = errors.New("invalid outcome")

// errPullAgain is wrapped by Pull when it ended early for a reason that passes.
var errPullAgain = errors.New("pull ended early")

// errDenied is wrapped by Report when the server forbids it; trying on is useless.
var errDenied = errors.New("the server denies the outcome")
