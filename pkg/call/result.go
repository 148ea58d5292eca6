package call

import "encoding/json"

// Result is the final outcome of a call. There is at most one, for ever.
type Result struct {
	Success bool `json:"success"`
	// Output of a success: a JSON string, an array of content parts, or null.
	Output json.RawMessage `json:"output,omitempty"`
	// Error of a failure: the text for the model.
	Error string `json:"error,omitempty"`
	// Reason is the machine word for counters: who decided this result and why.
	Reason string `json:"reason"`
}

// The reasons of results. Executors may send others of the form [a-z_]{1,32}.
const (
	// ReasonHandler: the handler returned it.
	ReasonHandler = "handler"
	// ReasonTimeout: the handler did not return in time.
	ReasonTimeout = "timeout"
	// ReasonPanic: the handler panicked.
	ReasonPanic = "panic"
	// ReasonCrashed: it was handed out several times and never finished, since it crashed
	// its executors or they were lost for another reason.
	ReasonCrashed = "crashed"
	// ReasonUnknownOutcome: an earlier delivery may have run and nobody can tell.
	ReasonUnknownOutcome = "unknown_outcome"
	// ReasonNoExecutor: no executor took the call in time.
	ReasonNoExecutor = "no_executor"
	// ReasonInvalidName: the function name cannot be served.
	ReasonInvalidName = "invalid_name"
	// ReasonInvalidArguments: the arguments are not a JSON object.
	ReasonInvalidArguments = "invalid_arguments"
	// ReasonInvalidOutput: the output is not what the API accepts.
	ReasonInvalidOutput = "invalid_output"
	// ReasonTooLarge: the call or its result exceeds a limit.
	ReasonTooLarge = "too_large"
	// ReasonGaveUp: a technical failure and no attempts left.
	ReasonGaveUp = "gave_up"
	// ReasonRefused: the API refused the result, and this one took its place.
	ReasonRefused = "refused"
	// ReasonOperator: an operator answered it.
	ReasonOperator = "operator"
	// ReasonDeadline: no outcome arrived before the call's deadline.
	ReasonDeadline = "deadline"
)
