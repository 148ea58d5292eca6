package call

import (
	"fmt"
	"time"
)

// RefusalClass sorts the API's refusals by what has to be done.
type RefusalClass string

// The classes of refusal.
const (
	// RefusedUnknownCall: a call of the batch is not pending: not yet registered,
	// or already answered. Retry on the race schedule, then look at the session.
	RefusedUnknownCall RefusalClass = "unknown_call"
	// RefusedConflict: the call has another result or its turn is over. Final for the call.
	RefusedConflict RefusalClass = "conflict"
	// RefusedInvalid: something in the batch is not acceptable. Isolate it.
	RefusedInvalid RefusalClass = "invalid"
	// RefusedTooLarge: the batch or a result is over a limit. Split, then replace.
	RefusedTooLarge RefusalClass = "too_large"
	// RefusedAuth: the API key is refused. Stop, keep the results, tell the operator.
	RefusedAuth RefusalClass = "auth"
	// RefusedGone: the session does not exist any more.
	RefusedGone RefusalClass = "gone"
	// RefusedBusy: nothing is wrong with the batch; try again later. Network
	// failures and unreadable answers count here: the batch may have been applied.
	RefusedBusy RefusalClass = "busy"
)

// Refusal is the error of an API request, read for what has to be done.
type Refusal struct {
	Class RefusalClass
	// CallID is the call that the API's message names, empty when it names none.
	CallID string
	// RetryAfter is the API's wish, zero when it stated none.
	RetryAfter time.Duration
	// Status is the HTTP status, zero when no answer arrived.
	Status int
	// Code and RequestID are the API's own, for the log.
	Code, RequestID string
	// Param is the member of the request that the API complains about, in its words; empty
	// when it names none.
	Param string
	// Err is the underlying error.
	Err error
}

// Error says what the API answered.
func (r *Refusal) Error() string {
	if r.Status == 0 {
		return fmt.Sprintf("%s: %v", r.Class, r.Err)
	}
	return fmt.Sprintf("%s: HTTP %d %s: %v", r.Class, r.Status, r.Code, r.Err)
}

// Unwrap gives the underlying error.
func (r *Refusal) Unwrap() error { return r.Err }
