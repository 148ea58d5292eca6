package queue

import (
	"errors"
	"fmt"

	"github.com/callfan/callfan/pkg/call"
)

// The errors that callers act on. The package's errors wrap them.
var (
	// ErrInvalidFunction: the function's name or declaration cannot be used. Final.
	ErrInvalidFunction = call.ErrInvalidFunction
	// ErrInvalidCall: the hand-over lacks a part or its arguments are not JSON.
	// Nothing was published. Final.
	ErrInvalidCall = errors.New("invalid call")
	// ErrInvalidOutcome: the outcome cannot be put on the wire. Nothing was
	// published. Final.
	ErrInvalidOutcome = errors.New("invalid outcome")
	// ErrGone: the hand-over was published before, and an executor has ended it.
	ErrGone = errors.New("the hand-over was published before and is over")
	// ErrTooLarge: the message exceeds the server's limit; see TooLargeError.
	// Nothing was stored. Final.
	ErrTooLarge = errors.New("message too large")
	// ErrBacklogFull: the stream, or the function's share of it, is full. Nothing
	// was stored; the same message can be published again once there is room.
	ErrBacklogFull = errors.New("backlog is full")
	// ErrUnavailable: NATS did not confirm the message in time. It may have been
	// stored; publishing it again with the same id is safe.
	ErrUnavailable = errors.New("NATS did not answer in time")
	// ErrPermission: the server refused a subject; see PermissionError.
	ErrPermission = errors.New("permission denied by the NATS server")
	// ErrUnbound: the pool's durable consumer does not exist. Register again.
	ErrUnbound = errors.New("the pool's durable consumer does not exist")
	// ErrInterrupted: a pull ended early because the connection, the server or the
	// consumer's leader changed. Calls that were handed out stay valid. Pull again.
	ErrInterrupted = errors.New("pull interrupted")
	// ErrNoDispatcher: no dispatcher answered a request.
	ErrNoDispatcher = errors.New("no dispatcher answered")
	// ErrIncompatible: a stream or a setting of this prefix exists and does not fit.
	// Nothing was changed.
	ErrIncompatible = errors.New("incompatible installation")
	// ErrClosed: the connection was closed.
	ErrClosed = errors.New("connection is closed")
)

// TooLargeError says by how much a message exceeds the limit. It wraps ErrTooLarge.
type TooLargeError struct {
	// What is "call" or "outcome".
	What string
	// Size is that of the whole envelope, headers included; Limit is the server's
	// max_payload. Both in bytes.
	Size, Limit int64
}

// Error names both sizes and the setting that decides.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s too large: %d bytes with headers, the server's max_payload is %d", e.What, e.Size, e.Limit)
}

// Unwrap makes errors.Is(err, ErrTooLarge) true.
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

// PermissionError names what the server refused. It wraps ErrPermission.
type PermissionError struct {
	// Operation is "publish" or "subscribe".
	Operation string
	// Subject is the refused subject.
	Subject string
	// User is the name under which the client connected, empty when it has none.
	User string
}

// Error names the subject and the remedy.
func (e *PermissionError) Error() string {
	who := "this connection's user"
	if e.User != "" {
		who = fmt.Sprintf("user %q", e.User)
	}
	return fmt.Sprintf("permission denied: %s may not %s to %q; allow that subject in the server's permissions", who, e.Operation, e.Subject)
}

// Unwrap makes errors.Is(err, ErrPermission) true.
func (e *PermissionError) Unwrap() error { return ErrPermission }

// RegisterError is a dispatcher's refusal of a registration. Asking again without
// a change gets the same answer.
type RegisterError struct {
	// Function is the name that was refused.
	Function string
	// Code is one of the Code constants.
	Code string
	// Message says what is wrong and what to do about it.
	Message string
}

// Error gives the function, the code and the sentence.
func (e *RegisterError) Error() string {
	return fmt.Sprintf("function %q was refused (%s): %s", e.Function, e.Code, e.Message)
}

// The codes of RegisterError.
const (
	CodeInvalidRequest  = "invalid_request"
	CodeProtocol        = "unsupported_protocol"
	CodeInvalidPool     = "invalid_pool"
	CodeInvalidFunction = "invalid_function"
	CodeSubjectMismatch = "subject_mismatch"
	CodeFunctionTaken   = "function_taken"
	CodePoolTaken       = "pool_taken"
	// CodeDefinitionConflict: executors of the same version serve the function with
	// another definition.
	CodeDefinitionConflict = "definition_conflict"
	// CodeUnavailable: the dispatcher cannot decide now. Register retries it.
	CodeUnavailable = "unavailable"
)
