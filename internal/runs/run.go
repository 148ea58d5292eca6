package runs

import (
	"encoding/json"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Status is how far a run is.
type Status string

// The statuses of a run. The first three are on the way; the others are final.
const (
	// Queued: recorded, and no replica has begun.
	Queued Status = "queued"
	// InProgress: a response is being made.
	InProgress Status = "in_progress"
	// RequiresAction: functions are being run.
	RequiresAction Status = "requires_action"

	// Completed: the last response has no calls; its text is the answer.
	Completed Status = "completed"
	// Incomplete: the API ended the last response early, Reason says why in the API's word.
	Incomplete Status = "incomplete"
	// Failed: the API failed or refused a request for good, or the run cannot go on.
	Failed Status = "failed"
	// Stopped: a bound was hit; Reason says which.
	Stopped Status = "stopped"
	// Cancelled: somebody asked for it.
	Cancelled Status = "cancelled"
)

// Final says that the run is over.
func (s Status) Final() bool {
	switch s {
	case Queued, InProgress, RequiresAction:
		return false
	}
	return true
}

// The reasons of stopped runs: the bounds.
const (
	ReasonRounds  = "max_rounds"
	ReasonCalls   = "max_calls"
	ReasonTime    = "max_time"
	ReasonRepeats = "repeated_calls"
)

// The reasons of failed runs that are callfan's own; others are the API's error codes.
const (
	// ReasonRefused: the API refuses the request as it is.
	ReasonRefused = "request_refused"
	// ReasonTooLarge: the run's state does not fit into the store.
	ReasonTooLarge = "too_large"
	// ReasonLostResponse: the calls of a response were run, and the response is gone.
	ReasonLostResponse = "response_lost"
	// ReasonUncertain: a request may have been added to a conversation, and its answer is lost.
	ReasonUncertain = "conversation_uncertain"
)

// Run is the state of a run, but for the bodies: the request, items and outputs are
// entries of their own in the store.
type Run struct {
	ID     string `json:"id"`
	Status Status `json:"status"`
	// Reason is a machine word for a final status, Error what is to be said about it.
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
	Model  string `json:"model,omitempty"`
	Bounds Bounds `json:"bounds"`
	// Created, Changed and Ended are by the clock of the replica that wrote them.
	Created time.Time `json:"created_at"`
	Changed time.Time `json:"changed_at"`
	Ended   time.Time `json:"ended_at,omitzero"`
	// Deadline is when the wall time is over.
	Deadline time.Time `json:"deadline"`
	Rounds   []Round   `json:"rounds"`
	// Text is the answer's text, Refusal the model's refusal, of the last response.
	Text    string `json:"output_text,omitempty"`
	Refusal string `json:"refusal,omitempty"`
	// Owner is the replica that wrote the state.
	Owner string `json:"owner,omitempty"`
}

// Round is one request and its response.
type Round struct {
	// Attempt counts the requests made for it, from 1.
	Attempt int `json:"attempt"`
	// Response is the response's id; empty until the API has told it.
	Response string `json:"response_id,omitempty"`
	// Sequence is the number of the last event of its stream that is recorded.
	Sequence int64 `json:"sequence,omitempty"`
	// Done: the response has ended, Items is the number of its items.
	Done  bool `json:"done,omitempty"`
	Items int  `json:"items,omitempty"`
	// Began and Ended are when the request was made and when the response ended.
	Began time.Time `json:"began_at"`
	Ended time.Time `json:"ended_at,omitzero"`
	// Calls are those to be answered, in the order of the response.
	Calls []Call `json:"calls,omitempty"`
	// Sent are the outputs that the request carries.
	Sent []Ref `json:"sent,omitempty"`
	// LastItem is the newest item of the conversation before the request; only with one.
	LastItem string `json:"last_item,omitempty"`
}

// Ref names an item: the round, the attempt that made its response, and the index in the
// response's output. With the attempt a replica that writes late, when another one has had
// the response made anew, overwrites nothing.
type Ref struct {
	Round   int `json:"round"`
	Attempt int `json:"attempt"`
	Index   int `json:"index"`
}

// CallKind says which kind of item asks for the call.
type CallKind string

// The kinds of calls.
const (
	FunctionCall   CallKind = "function_call"
	CustomToolCall CallKind = "custom_tool_call"
	ToolSearchCall CallKind = "tool_search_call"
)

// Call is one item that has to be answered.
type Call struct {
	Index int      `json:"index"`
	Kind  CallKind `json:"type"`
	ID    string   `json:"call_id"`
	// Function is the name by which executors register it: with a namespace
	// "namespace.name".
	Function string `json:"name,omitempty"`
	// Async: the next request need not carry its output.
	Async bool `json:"async,omitempty"`
	// Print is a fingerprint of the name and the arguments, to see repetitions.
	Print string `json:"print,omitempty"`
}

// Bounds end a run that does not end by itself. Zero fields have defaults.
type Bounds struct {
	// Rounds is the largest number of responses. Defaults to 10.
	Rounds int `json:"rounds,omitempty"`
	// Calls is the largest number of calls in all. Defaults to 100.
	Calls int `json:"calls,omitempty"`
	// Time is the wall time. Defaults to 30 min, at most 72 h.
	Time call.Duration `json:"time,omitempty"`
	// Repeats is in how many rounds on end the same function may be called with the
	// same arguments. Defaults to 3.
	Repeats int `json:"repeats,omitempty"`
}

// Output is an entry of the store that answers a call: the item as it is sent.
type Output struct {
	Ref
	Item json.RawMessage
}
