package executor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// declaration is a function on its way into an executor.
type declaration struct {
	call.Function
	verify VerifyHandler
}

// Option sets one property of a function. Its error wraps ErrInvalidOption.
type Option func(*declaration) error

func invalidOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidOption, fmt.Sprintf(format, args...))
}

// WithDescription tells the model what the function does.
func WithDescription(text string) Option {
	return func(f *declaration) error {
		f.Description = text
		return nil
	}
}

// WithParameters sets the JSON Schema of the arguments, an object schema. For
// Handle it replaces the schema that is derived from the type.
func WithParameters(schema json.RawMessage) Option {
	return func(f *declaration) error {
		if !json.Valid(schema) {
			return invalidOption("WithParameters: the schema is not valid JSON")
		}
		f.Parameters = schema
		return nil
	}
}

// WithTimeout bounds one run of the handler. Defaults to 30 s. The dispatcher's
// configuration may overrule it.
func WithTimeout(d time.Duration) Option {
	return func(f *declaration) error {
		if d <= 0 {
			return invalidOption("WithTimeout(%s): use a positive duration", d)
		}
		f.Policy.Timeout = call.Duration(d)
		return nil
	}
}

// WithQueueTimeout bounds how long a call waits for an executor. Defaults to 60 s.
func WithQueueTimeout(d time.Duration) Option {
	return func(f *declaration) error {
		if d <= 0 {
			return invalidOption("WithQueueTimeout(%s): use a positive duration", d)
		}
		f.Policy.QueueTimeout = call.Duration(d)
		return nil
	}
}

// WithEffects says what running the function twice does. Defaults to
// call.EffectsSideEffects, the safe one.
func WithEffects(e call.Effects) Option {
	return func(f *declaration) error {
		switch e {
		case call.EffectsNone, call.EffectsIdempotent, call.EffectsSideEffects:
			f.Policy.Effects = e
			return nil
		}
		return invalidOption("WithEffects(%q): use none, idempotent or side_effects", e)
	}
}

// WithTotalDeadline bounds the time from the claim of a call to its answer, all
// attempts included. Defaults to 15 min, or to one attempt's times if they are longer.
func WithTotalDeadline(d time.Duration) Option {
	return func(f *declaration) error {
		if d <= 0 {
			return invalidOption("WithTotalDeadline(%s): use a positive duration", d)
		}
		f.Policy.TotalDeadline = call.Duration(d)
		return nil
	}
}

// WithAttempts is how often a technical failure, see Retry, lets a call run, 1 to
// 1000. Defaults to 3 for functions that may be run again (call.EffectsNone,
// call.EffectsIdempotent) and to 1 for others.
func WithAttempts(n int) Option {
	return func(f *declaration) error {
		if n < 1 || n > 1000 {
			return invalidOption("WithAttempts(%d): use 1 to 1000", n)
		}
		f.Policy.Attempts = n
		return nil
	}
}

// WithBackoff sets the waits between attempts. Members that are zero keep their
// defaults: 1 s, at most 1 min, doubling, 20 % longer or shorter.
func WithBackoff(b call.Backoff) Option {
	return func(f *declaration) error {
		switch {
		case b.Initial < 0 || b.Max < 0:
			return invalidOption("WithBackoff: Initial is %s and Max %s; use positive durations", b.Initial, b.Max)
		case b.Max > 0 && b.Max < b.Initial:
			return invalidOption("WithBackoff: Max is %s, less than Initial, %s", b.Max, b.Initial)
		case b.Multiplier != 0 && !(b.Multiplier >= 1 && b.Multiplier <= 1000):
			return invalidOption("WithBackoff: Multiplier is %g; use 1 to 1000", b.Multiplier)
		case !(b.Jitter >= 0 && b.Jitter <= 1):
			return invalidOption("WithBackoff: Jitter is %g; use 0 to 1", b.Jitter)
		}
		f.Policy.Backoff = b
		return nil
	}
}

// WithOnUncertain says what happens to a call that may have run without its outcome
// being known. Defaults to call.UncertainRerun for functions that may be run again,
// to call.UncertainVerify for others that have a verify handler, see WithVerify,
// which that choice needs, and to call.UncertainFail for the rest. call.UncertainPark
// asks a verify handler as well, if there is one, and keeps the model waiting while an
// operator decides about what cannot be found out. The dispatcher's configuration may
// overrule it.
func WithOnUncertain(choice call.OnUncertain) Option {
	return func(f *declaration) error {
		switch choice {
		case call.UncertainRerun, call.UncertainVerify, call.UncertainFail, call.UncertainPark:
			f.Policy.OnUncertain = choice
			return nil
		}
		return invalidOption("WithOnUncertain(%q): use rerun, verify, fail or park", choice)
	}
}
