package call

import (
	"encoding/json"
	"time"
)

// Call is one function call that a session's required actions list.
type Call struct {
	Key
	// Function is the name as the model gave it: free text, never put into a
	// subject unchecked.
	Function string
	// Arguments are the bytes that the API sent, untouched: an object, a
	// JSON-encoded string, null, or empty when the member is missing.
	Arguments json.RawMessage
}

// Dispatch is one hand-over of a call to the executors.
type Dispatch struct {
	Call
	// Attempt counts from 1; a new attempt is a decision to run the call again.
	Attempt int
	// Handover counts the publications of one attempt, from 1. It grows only when
	// a published call came back unstarted and has to be published once more.
	Handover int
	// Nonce proves that an outcome answers this very attempt; see Nonces.
	Nonce string
	// Partition decides the subject on which the outcome is awaited.
	Partition int
	// Timeout bounds one run of the handler.
	Timeout time.Duration
	// Deadline is the moment after which nobody waits for the outcome.
	Deadline time.Time
	// Uncertain says that an earlier hand-over or attempt may have run.
	Uncertain bool
	// OnUncertain is what the executor does with a call that may have run.
	OnUncertain OnUncertain
	// Sequence is the message's number in the queue, set by its publication; 0 when it is
	// not known.
	Sequence uint64
	// Over, when not nil, is closed once the call has a result or has ended: a publication
	// that was not confirmed is then not tried again.
	Over <-chan struct{}
	// Traceparent is the W3C trace context, empty without tracing.
	Traceparent string
}

// MessageID identifies the hand-over for the stream's duplicate window: the same
// hand-over published twice is stored once.
func (d Dispatch) MessageID() string {
	return d.Hash() + "." + itoa(d.Attempt) + "." + itoa(d.Handover)
}
