package runs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// ErrStale is returned by Store.Save when somebody else wrote the run since it was
// loaded. Nothing was written.
var ErrStale = errors.New("the run was changed by another replica")

// ErrExists is returned by Store.Create for an id that is taken. Nothing was written.
var ErrExists = errors.New("the run exists already")

// ErrNotFound says that there is no such run, or no longer.
var ErrNotFound = errors.New("no such run")

// ErrTooLarge is wrapped by errors about an entry that the store can never take.
var ErrTooLarge = errors.New("too large for the store")

// Store keeps runs. All methods are safe for concurrent use. An error that is none of
// the above leaves open whether it was done; all methods can be repeated.
type Store interface {
	// Create records a run and its request, and makes it active.
	Create(ctx context.Context, run Run, request json.RawMessage) error
	// Load gives a run and the revision to save it over.
	Load(ctx context.Context, id string) (Run, uint64, error)
	// Save writes a run over the revision, and gives the new one. What was saved by a
	// request whose answer was lost is recognised by its content, not refused as stale.
	Save(ctx context.Context, run Run, revision uint64) (uint64, error)
	// Request gives the request of a run.
	Request(ctx context.Context, id string) (json.RawMessage, error)
	// PutTools stores the run's resolved list of tools unless there is one, and gives what
	// is stored.
	PutTools(ctx context.Context, id string, tools json.RawMessage) (json.RawMessage, error)
	// PutItem stores an item of a response, over what is there.
	PutItem(ctx context.Context, id string, ref Ref, item json.RawMessage) error
	// Item gives it.
	Item(ctx context.Context, id string, ref Ref) (json.RawMessage, error)
	// PutOutput stores the output of a call unless there is one, and gives what is stored.
	PutOutput(ctx context.Context, id string, out Output) (json.RawMessage, error)
	// Output gives it; ErrNotFound when there is none.
	Output(ctx context.Context, id string, ref Ref) (json.RawMessage, error)
	// Cancel notes that the run shall end; Cancelled says whether it was.
	Cancel(ctx context.Context, id string) error
	Cancelled(ctx context.Context, id string) (bool, error)
	// Nudge has the run's owner look at it.
	Nudge(ctx context.Context, id string) error
	// Retire ends the activity of a run.
	Retire(ctx context.Context, id string) error
	// Active calls each for every active run, and then, until ctx ends, whenever one is
	// created, cancelled or nudged. It follows a lost connection.
	Active(ctx context.Context, each func(id string)) error
	// Remember notes to which run a response belongs, RunOf finds it.
	Remember(ctx context.Context, response, id string) error
	RunOf(ctx context.Context, response string) (string, error)
}

// Model is the Responses API. Its errors are *call.Refusal.
type Model interface {
	// Create asks for a response. body is the request; key is its idempotency key. It
	// calls on for each event, in order, on the calling goroutine; an error of on ends it
	// and is returned as it is. It returns nil after Ended, or when a response was begun
	// in the background and is not being streamed.
	Create(ctx context.Context, body json.RawMessage, key string, on func(Event) error) error
	// Retrieve follows a response from the event after the given number, or, when stream is
	// not set, gives its present state: Ended, or Created when it is still being made.
	Retrieve(ctx context.Context, response string, after int64, stream bool, on func(Event) error) error
	// Cancel ends a response that is made in the background.
	Cancel(ctx context.Context, response string) error
	// Items gives the newest items of a conversation, the newest first, each as the API
	// shows it.
	Items(ctx context.Context, conversation string) ([]json.RawMessage, error)
}

// Event is what the API tells while it makes a response.
type Event struct {
	Kind EventKind
	// Sequence is the number of the event in its stream; 0 without a stream.
	Sequence int64
	// Response is the response's id, in Created and Ended.
	Response string
	// Status, in Created and Ended, is the response's status.
	Status string
	// Index is the index of the item in the output.
	Index int
	// Item is the item: as far as it is known in ItemAdded, whole in ItemDone.
	Item json.RawMessage
	// Delta is a piece of text, in TextDelta.
	Delta string
	// Outcome is how the response ended, in Ended.
	Outcome *Outcome
}

// EventKind says what an event tells.
type EventKind string

// The kinds of events.
const (
	// Created: the API has taken the request, and the response has an id.
	Created EventKind = "created"
	// ItemAdded: an item has begun; of a call the name is known.
	ItemAdded EventKind = "item_added"
	// ItemDone: an item is whole.
	ItemDone EventKind = "item_done"
	// TextDelta: the answer's text grows.
	TextDelta EventKind = "text_delta"
	// Ended: the response is over.
	Ended EventKind = "ended"
)

// Outcome is how a response ended.
type Outcome struct {
	// Status is completed, incomplete, failed or cancelled.
	Status string
	// Reason is the reason of an incomplete response, or the code of a failed one.
	Reason string
	// Error is the API's text about a failure.
	Error string
	// Output are all items, as the API gave them.
	Output []json.RawMessage
}

// Dispatcher runs the calls of active runs.
type Dispatcher interface {
	// Attach and Detach say which runs have calls to look for; both are idempotent.
	Attach(ctx context.Context, ids ...string) error
	Detach(ctx context.Context, ids ...string) error
	// Nudge asks to look at a run now.
	Nudge(id, trigger string)
	// Owns says whether this replica serves the partition.
	Owns(partition int) bool
}

// Observer is told what happens, for metrics. Its methods must not block.
type Observer interface {
	// Request reports one API request: the operation ("response_create",
	// "response_retrieve"), the refusal's class or "ok", and how long it took, the making of
	// a response that was followed included.
	Request(operation, class string, took time.Duration)
	// RunEnded reports the end of a run.
	RunEnded(status Status)
}

type noObserver struct{}

func (noObserver) Request(string, string, time.Duration) {}
func (noObserver) RunEnded(Status)                       {}

// Functions knows the functions that executors have registered.
type Functions interface {
	// Function is the definition of a registered function.
	Function(name string) (call.Function, bool)
	// Functions are all of them, sorted by name.
	Functions() []call.Function
}
