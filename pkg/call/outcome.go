package call

import (
	"encoding/json"
	"time"
)

// Kind says what an attempt came to.
type Kind string

// The kinds of outcome. Success and failure are results and go to the model;
// the others tell the dispatcher what to do with the call.
const (
	// Success carries an output.
	Success Kind = "success"
	// Failure is a business failure: its text goes to the model, never retried.
	Failure Kind = "failure"
	// Retry is a technical failure: the dispatcher decides whether to try again.
	Retry Kind = "retry"
	// Released gives back a call that was never started.
	Released Kind = "released"
	// Uncertain says that an earlier delivery may have taken effect and that the
	// executor could not find out: the verify handler could not tell.
	Uncertain Kind = "uncertain"
	// Rerun has a parked call run again. Only an operator decides so, see Nonces.Decision.
	Rerun Kind = "rerun"
	// Deferred says that the result will be posted later by whoever holds the nonce.
	Deferred Kind = "deferred"
)

// Outcome is what one attempt came to, as its executor reported it.
type Outcome struct {
	Key
	// Nonce is the attempt's nonce, echoed.
	Nonce string
	Kind  Kind
	// Output, for Success: a JSON string or an array of content parts, as the
	// executor wrote it.
	Output json.RawMessage
	// Error, for Failure: the text for the model.
	Error string
	// Reason, for Retry and Uncertain: the text for operators, and for the model when
	// the dispatcher gives up.
	Reason string
	// After, for Retry: the executor's wish for the delay; zero leaves it to the
	// dispatcher.
	After time.Duration
	// Executor names the process that reported it, for the call's history; empty when
	// it did not say.
	Executor string
	// Cause is a short machine word about a Failure that the executor itself
	// decided ("timeout", "panic", "unknown_outcome"), for counters; empty when the
	// handler returned the error.
	Cause string
}

// Result turns a Success or a Failure into the call's result. It must not be
// called on other kinds.
func (o Outcome) Result() Result {
	if o.Kind == Success {
		return Result{Success: true, Output: o.Output, Reason: ReasonHandler}
	}
	reason := o.Cause
	if reason == "" {
		reason = ReasonHandler
	}
	return Result{Error: o.Error, Reason: reason}
}

// MessageID identifies the outcome for its stream: a repeated outcome is stored
// once. A hand-over can come back released more than once in one attempt, so its
// number is part of that id.
func (o Outcome) MessageID(handover int) string {
	if o.Kind == Released {
		return o.ReleaseID(handover)
	}
	return o.Nonce + "." + string(o.Kind)
}

// ReleaseID is the message id of a Released outcome of this attempt's hand-over.
func (o Outcome) ReleaseID(handover int) string {
	return o.Nonce + "." + string(Released) + "." + itoa(handover)
}
