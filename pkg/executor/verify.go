package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/callfan/callfan/pkg/call"
)

// Verdict is what a verify handler found out about an earlier run. Make it by Done,
// NotDone or CannotTell; the zero Verdict cannot tell.
type Verdict struct {
	found  finding
	output Output
	// err says why the output of Done is not usable.
	err    error
	reason string
}

type finding int

const (
	cannotTell finding = iota
	done
	notDone
)

// LogValue keeps the output out of logs.
func (v Verdict) LogValue() slog.Value {
	return slog.StringValue([]string{"cannot_tell", "done", "not_done"}[v.found])
}

// Done says that the earlier run took effect. The call succeeds with this output,
// which is turned into what the model gets by the rules of Handle.
func Done(output any) Verdict {
	o, err := outputOf(output)
	return Verdict{found: done, output: o, err: err}
}

// NotDone says that the earlier run did not take effect and will not do so any
// more. The handler is run.
func NotDone() Verdict { return Verdict{found: notDone} }

// CannotTell says that it could not be found out. The handler is not run, and the
// dispatcher decides. The reason is for operators, and for the model when the
// dispatcher gives up.
func CannotTell(reason string) Verdict { return Verdict{found: cannotTell, reason: reason} }

// VerifyHandler finds out whether an earlier run of the call took effect, most often
// by asking a downstream for Call.IdempotencyKey. It must have no effects itself. Its
// context ends as a handler's does, after the function's timeout. An error, a panic
// and a timeout mean that it cannot tell.
type VerifyHandler func(ctx context.Context, c Call) (Verdict, error)

// WithVerify gives the function a verify handler. It is asked before a call that
// may have run already is run again, by default when the function has side effects;
// see WithOnUncertain. Middleware does not wrap it.
func WithVerify(verify VerifyHandler) Option {
	return func(d *declaration) error {
		if verify == nil {
			return invalidOption("WithVerify: the verify handler is nil")
		}
		d.verify, d.Verifies = verify, true
		return nil
	}
}

// WithTypedVerify is WithVerify with the arguments decoded into In, as Handle does
// but without their check. Arguments that do not fit In mean that it cannot tell.
// FromContext gives the call and its idempotency key.
func WithTypedVerify[In any](verify func(ctx context.Context, in In) (Verdict, error)) Option {
	if verify == nil {
		return WithVerify(nil)
	}
	return WithVerify(func(ctx context.Context, c Call) (Verdict, error) {
		var in In
		if reflect.TypeFor[In]() == rawMessage {
			reflect.ValueOf(&in).Elem().SetBytes(c.Arguments)
		} else if arguments := bytes.TrimSpace(c.Arguments); len(arguments) > 0 {
			if err := json.Unmarshal(arguments, &in); err != nil {
				return CannotTell("the arguments do not fit the verify handler: " + unmarshalText(err)), nil
			}
		}
		return verify(ctx, in)
	})
}

// verification is one run of a verify handler.
type verification struct{ *running[Verdict] }

func (ex *Executor) verify(ctx context.Context, f *function, d call.Dispatch) verification {
	return verification{enter(ctx, ex, f, d, true, "verify", f.verify)}
}

// ending waits for the verdict; false lets the call run.
func (v verification) ending() (ending, bool) {
	r, returned := v.wait()
	verdict := r.value
	switch {
	case v.cancelled():
		return ending{reason: "cancelled"}, true
	case r.crashed:
		return uncertain("the verify handler crashed"), true
	case returned && r.err == nil && verdict.found != cannotTell:
		v.log().Info("uncertain call was verified", "verdict", verdict)
	case v.interrupted():
		return leftToLease(), true
	case !returned, v.timedOut() && (errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, ErrTimeout)):
		return uncertain(fmt.Sprintf("the verify handler did not answer within %s", v.deadline.Sub(v.began))), true
	case r.err != nil:
		return uncertain("the verify handler failed: " + errorText(r.err)), true
	default:
		v.log().Warn("uncertain call could not be verified", "verdict", verdict)
		return uncertain(cmp.Or(verdict.reason, "the verify handler could not tell")), true
	}
	switch {
	case verdict.found == notDone:
		return ending{}, false
	case verdict.err != nil:
		return failed(call.ReasonInvalidOutput, verdict.err.Error()), true
	default:
		return ending{outcome: call.Outcome{Kind: call.Success, Output: verdict.output.wire()}, reason: "verified"}, true
	}
}
