package executor

import (
	"errors"
	"time"
)

// Errors of New, Handle, HandleRaw and Run.
var (
	// ErrInvalidConfig is wrapped by the errors of New; nothing was started.
	ErrInvalidConfig = errors.New("invalid executor configuration")
	// ErrInvalidOption is wrapped by Handle and HandleRaw when an option or the
	// handler is not usable; the function was not added.
	ErrInvalidOption = errors.New("invalid function option")
	// ErrDuplicateFunction is wrapped by Handle and HandleRaw when the name is taken;
	// the first function stays.
	ErrDuplicateFunction = errors.New("the function is already handled")
	// ErrAlreadyRunning is returned by Run, Handle and HandleRaw once Run was called:
	// an executor runs once, with the functions it had then.
	ErrAlreadyRunning = errors.New("the executor is already running")
	// ErrNoFunctions is returned by Run when no function is handled.
	ErrNoFunctions = errors.New("no function is handled; call Handle before Run")
	// ErrHandlersLeft is wrapped by Run when handlers were still running when it
	// returned. Their calls were settled; their goroutines go on until the process ends.
	ErrHandlersLeft = errors.New("handlers did not return")
)

// Causes of a handler's context, see context.Cause.
var (
	// ErrTimeout: the run's time is over; the call was answered with a failure.
	ErrTimeout = errors.New("the function's time is over")
	// ErrCancelled: nobody waits for the result any more; nothing will be reported.
	ErrCancelled = errors.New("the call was cancelled")
	// ErrStopped: the executor stops and its StopTimeout is over. A result that the
	// handler still returns within a second is reported.
	ErrStopped = errors.New("the executor stops")
)

// retryError marks a technical failure.
type retryError struct {
	err   error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// Retry marks err as a technical failure: the model is not told, and the
// dispatcher decides by the function's policy whether the call is run again, no
// sooner than after; zero leaves the delay to the dispatcher. When it gives up, the
// model gets the text of err. Retry(nil, …) is nil.
func Retry(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryError{err: err, after: max(after, 0)}
}

// uncertainError marks a run that may have taken effect.
type uncertainError struct{ err error }

func (e *uncertainError) Error() string { return e.err.Error() }
func (e *uncertainError) Unwrap() error { return e.err }

// Uncertain marks err as the loss of a run that may have taken effect, as when a
// downstream went away before it answered. What follows is the function's choice for
// uncertain calls, see WithOnUncertain: a function that may be run again has a
// technical failure, as by Retry; one that can be verified is left to its lease, after
// which the verify handler is asked; for any other, the model is told that the outcome
// is unknown, or an operator decides. Uncertain(nil) is nil.
func Uncertain(err error) error {
	if err == nil {
		return nil
	}
	return &uncertainError{err: err}
}

// failureError is a failure with a cause of the handler's own.
type failureError struct{ cause, text string }

func (e *failureError) Error() string { return e.text }

// Failure is a business failure as a plain error is, with a short machine word of
// [a-z_]{1,32} for counters beside the text for the model. Use few distinct words.
func Failure(cause, text string) error { return &failureError{cause: cause, text: text} }
