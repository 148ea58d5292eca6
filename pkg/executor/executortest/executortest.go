// Package executortest runs the functions of an executor in unit tests: with their
// argument checks, encoding, middleware and timeouts, and without any server.
package executortest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// New makes an executor to give functions to; it is never Run.
func New(t testing.TB, middleware ...executor.Middleware) *executor.Executor {
	t.Helper()
	ex, err := executor.New(executor.Config{Pool: "test", Middleware: middleware})
	if err != nil {
		t.Fatalf("executortest: %v", err)
	}
	return ex
}

// Option changes the call that Call makes.
type Option func(*call.Dispatch)

// WithKey sets the key, from which the idempotency key follows. Defaults to
// sess_test/turn_test/call_test.
func WithKey(k call.Key) Option { return func(d *call.Dispatch) { d.Key = k } }

// WithAttempt sets the number of the attempt. Defaults to 1.
func WithAttempt(n int) Option { return func(d *call.Dispatch) { d.Attempt = n } }

// WithTimeout bounds the run. Defaults to the function's own timeout.
func WithTimeout(timeout time.Duration) Option { return func(d *call.Dispatch) { d.Timeout = timeout } }

// WithDeadline sets the moment after which nobody waits for the outcome. Defaults to none.
func WithDeadline(at time.Time) Option { return func(d *call.Dispatch) { d.Deadline = at } }

// Uncertain marks the call as one that may have run before, as when its executor
// was killed. By the function's policy it is run again, its verify handler is asked
// first, it fails, or it is left to an operator: an outcome of the kind call.Uncertain.
func Uncertain() Option { return func(d *call.Dispatch) { d.Uncertain = true } }

// WithOnUncertain is Uncertain with the policy overruled, as a dispatcher may do.
func WithOnUncertain(choice call.OnUncertain) Option {
	return func(d *call.Dispatch) { d.Uncertain, d.OnUncertain = true, choice }
}

// Call runs the function name with these argument bytes and gives the outcome that
// would be reported. An empty text stands for missing arguments. A function that ex
// does not handle fails the test.
func Call(t testing.TB, ex *executor.Executor, name, arguments string, opts ...Option) call.Outcome {
	t.Helper()
	known := false
	for _, f := range ex.Functions() {
		known = known || f.Name == name
	}
	if !known {
		t.Fatalf("executortest: the executor handles no function %q; call executor.Handle first", name)
	}
	d := call.Dispatch{
		Call: call.Call{
			Key:      call.Key{Session: "sess_test", Turn: "turn_test", Call: "call_test"},
			Function: name, Arguments: json.RawMessage(arguments),
		},
		Attempt: 1, Handover: 1, Nonce: "1-test",
	}
	for _, opt := range opts {
		opt(&d)
	}
	return ex.Invoke(t.Context(), d)
}

// Text is the text that the model gets from a success. It fails the test for any
// other outcome and for an output that is no text.
func Text(t testing.TB, o call.Outcome) string {
	t.Helper()
	if o.Kind != call.Success {
		t.Fatalf("executortest: want a success, got %s: %s%s", o.Kind, o.Error, o.Reason)
	}
	var text *string
	if err := json.Unmarshal(o.Output, &text); err != nil || text == nil {
		t.Fatalf("executortest: the output is not a text: %s", o.Output)
	}
	return *text
}
