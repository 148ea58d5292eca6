package dispatcher

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// API is the service whose sessions are served. Its errors are *call.Refusal.
type API interface {
	// Session retrieves a session.
	Session(ctx context.Context, id string) (call.Session, error)
	// Submit sends a batch of tool results; nil means accepted, not applied.
	Submit(ctx context.Context, batch call.Batch) error
}

// Queue hands calls to executors and brings their outcomes back.
type Queue interface {
	// Publish stores hand-overs in the queue and sets the Sequence of each; the answers
	// are in the order of the questions. The same hand-over published twice is stored once. An error
	// leaves open whether the hand-over was stored.
	Publish(ctx context.Context, dispatches []call.Dispatch) []error
	// Consume gives batches of outcomes of a partition to handle until ctx ends.
	// Outcomes that were not acked come again.
	Consume(ctx context.Context, partition int, handle func([]call.Delivered)) error
	// Withdraw takes back a hand-over that no executor was given: true means that
	// nobody got it and nobody will, false that an executor may have it.
	Withdraw(ctx context.Context, dispatch call.Dispatch) (bool, error)
	// Report stores an outcome as an executor would.
	Report(ctx context.Context, dispatch call.Dispatch, outcome call.Outcome) error
	// Stored is the number under which a hand-over of the call lies in the queue, taken or
	// not; 0 when there is none.
	Stored(ctx context.Context, dispatch call.Dispatch) (sequence uint64, err error)
	// Reported says whether an outcome of the call that counts lies in the queue, whoever
	// has it.
	Reported(ctx context.Context, dispatch call.Dispatch, counts func(call.Outcome) bool) (bool, error)
	// Cancel tells the executors of a function to stop working on a call.
	Cancel(ctx context.Context, key call.Key, function, reason string) error
	// Bury keeps a message that cannot be used for operators.
	Bury(ctx context.Context, letter call.DeadLetter) error
	// TooLarge says whether err, from Publish, means that the call can never be
	// published because of its size.
	TooLarge(err error) bool
	// Gone says whether err, from Publish, means that this hand-over was published
	// before and is over: an executor has ended it.
	Gone(err error) bool
}

// Functions knows the functions that executors have registered.
type Functions interface {
	// Function is the definition of a registered function.
	Function(name string) (call.Function, bool)
	// Changed is closed at the next change of any definition.
	Changed() <-chan struct{}
}

// Arguments judges the arguments of calls before they are handed over.
type Arguments interface {
	// Check says, for the model, how the arguments, a JSON object, do not fit the
	// function's parameters. It must not block.
	Check(f call.Function, arguments json.RawMessage) error
}

// Source tells when a session may have changed.
type Source interface {
	// Watch calls nudge whenever the session should be looked at, until ctx ends.
	Watch(ctx context.Context, session string, nudge func(trigger string))
}

// Transition is one step in a call's life.
type Transition struct {
	Key      call.Key
	Function string
	// Registered says whether the function is known; unknown names are free text
	// and must not become metric labels.
	Registered bool
	From, To   call.State
	// Reason is the result's reason, for steps into a saved state.
	Reason string
	// Age is the time since the call was claimed.
	Age time.Duration
}

// Observer is told what happens, for metrics and displays. Its methods must not
// block.
type Observer interface {
	// Transition reports one step of one call.
	Transition(Transition)
	// Request reports one API request: the operation ("session", "submit"), the
	// refusal's class or "ok", and how long it took.
	Request(operation, class string, took time.Duration)
	// Batch reports an accepted submission.
	Batch(answers, bytes int)
	// Count reports one of the rare events that operators watch, by name.
	Count(event string)
	// Owned reports how many partitions and sessions this replica serves.
	Owned(partitions, sessions int)
}

// Events that Observer.Count reports.
const (
	EventTakeover       = "partition_taken"
	EventPartitionLost  = "partition_lost"
	EventInvalidOutcome = "invalid_outcome"
	EventForgedOutcome  = "forged_outcome"
	EventLateOutcome    = "late_outcome"
	EventUnknownOutcome = "unknown_outcome"
	EventRebuilt        = "record_rebuilt"
	EventRepublished    = "republished"
	EventReleased       = "released"
	EventRetried        = "retried"
	EventParked         = "parked"
	EventDecided        = "decided"
	EventWithdrawn      = "withdrawn"
	EventLateResult     = "late_result"
	// What the sweep repaired.
	EventListRestored   = "list_restored"
	EventSessionFound   = "session_found"
	EventCallFound      = "call_found"
	EventRecordRestored = "record_restored"
	EventCallMissed     = "call_missed"
	EventResent         = "resent"
	EventRelisted       = "relisted"
	EventRepairedText   = "repaired_text"
	EventSubstituted    = "substituted"
	EventOtherAction    = "other_action"
	EventAuthRefused    = "auth_refused"
	EventToolDrift      = "tool_drift"

	// Repairs of the queue, under the names that its adapter gives them.
	EventStuckCall     = "stuck_call"
	EventMovedCall     = "moved_call"
	EventOrphanOutcome = "orphan_outcome"
)

type noObserver struct{}

func (noObserver) Transition(Transition)                 {}
func (noObserver) Request(string, string, time.Duration) {}
func (noObserver) Batch(int, int)                        {}
func (noObserver) Count(string)                          {}
func (noObserver) Owned(int, int)                        {}

type noSource struct{}

func (noSource) Watch(ctx context.Context, _ string, _ func(string)) { <-ctx.Done() }

// Store is the part of the results store that the dispatcher uses.
type Store = results.Store
