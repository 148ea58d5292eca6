package executor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Option sets one property of a function. Its error wraps ErrInvalidOption.
type Option func(*call.Function) error

func invalidOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidOption, fmt.Sprintf(format, args...))
}

// WithDescription tells the model what the function does.
func WithDescription(text string) Option {
	return func(f *call.Function) error {
		f.Description = text
		return nil
	}
}

// WithParameters sets the JSON Schema of the arguments, an object schema. For
// Handle it replaces the schema that is derived from the type.
func WithParameters(schema json.RawMessage) Option {
	return func(f *call.Function) error {
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
	return func(f *call.Function) error {
		if d <= 0 {
			return invalidOption("WithTimeout(%s): use a positive duration", d)
		}
		f.Policy.Timeout = call.Duration(d)
		return nil
	}
}

// WithQueueTimeout bounds how long a call waits for an executor. Defaults to 60 s.
func WithQueueTimeout(d time.Duration) Option {
	return func(f *call.Function) error {
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
	return func(f *call.Function) error {
		switch e {
		case call.EffectsNone, call.EffectsIdempotent, call.EffectsSideEffects:
			f.Policy.Effects = e
			return nil
		}
		return invalidOption("WithEffects(%q): use none, idempotent or side_effects", e)
	}
}
