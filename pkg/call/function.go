package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Effects says what running a function twice does.
type Effects string

// The classes of effects, from safest to run again to least.
const (
	// EffectsNone: the function only reads.
	EffectsNone Effects = "none"
	// EffectsIdempotent: running it again with the same idempotency key changes nothing more.
	EffectsIdempotent Effects = "idempotent"
	// EffectsSideEffects: running it again may do the thing twice. The default.
	EffectsSideEffects Effects = "side_effects"
)

// Function is a function as its executors declare it.
type Function struct {
	// Name is free text of at least one byte; the model calls it by this name.
	Name string `json:"name"`
	// Description tells the model what it does.
	Description string `json:"description,omitempty"`
	// Parameters is the JSON Schema of the arguments, an object schema. Empty
	// means any object.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Policy     Policy          `json:"policy"`
}

// Policy is how a function wants to be run. The zero value is the safe default.
type Policy struct {
	// Timeout bounds one run of the handler. Defaults to 30 s.
	Timeout Duration `json:"timeout,omitempty"`
	// QueueTimeout bounds the wait for an executor. Defaults to 60 s.
	QueueTimeout Duration `json:"queue_timeout,omitempty"`
	// Effects decides what happens to a call that may already have run.
	// Defaults to EffectsSideEffects.
	Effects Effects `json:"effects,omitempty"`
}

// The defaults of Policy.
const (
	DefaultTimeout      = 30 * time.Second
	DefaultQueueTimeout = 60 * time.Second
)

// WithDefaults is the policy with every unset field at its default.
func (p Policy) WithDefaults() Policy {
	if p.Timeout == 0 {
		p.Timeout = Duration(DefaultTimeout)
	}
	if p.QueueTimeout == 0 {
		p.QueueTimeout = Duration(DefaultQueueTimeout)
	}
	if p.Effects == "" {
		p.Effects = EffectsSideEffects
	}
	return p
}

// Rerun says whether a call that may already have run can simply be run again.
func (p Policy) Rerun() bool {
	return p.Effects == EffectsNone || p.Effects == EffectsIdempotent
}

// ErrInvalidFunction is wrapped by the errors of Function.Validate.
var ErrInvalidFunction = errors.New("invalid function")

// Validate names the first thing that is wrong with the declaration. Its errors
// wrap ErrInvalidFunction.
func (f Function) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w %q: %s", ErrInvalidFunction, f.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case f.Name == "":
		return bad("the name is empty")
	case f.Policy.Timeout < 0 || f.Policy.QueueTimeout < 0:
		return bad("timeouts must not be negative")
	}
	switch f.Policy.Effects {
	case "", EffectsNone, EffectsIdempotent, EffectsSideEffects:
	default:
		return bad("effects is %q; use none, idempotent or side_effects", f.Policy.Effects)
	}
	if len(f.Parameters) > 0 {
		var root map[string]json.RawMessage
		if err := json.Unmarshal(f.Parameters, &root); err != nil {
			return bad("parameters is not a JSON object: %v", err)
		}
		if t, ok := root["type"]; ok && string(t) != `"object"` {
			return bad("parameters has the root type %s; functions take an object", t)
		}
	}
	return nil
}

// Duration is a time.Duration that reads and writes itself as text, such as
// "30s" or "1m30s", in JSON and YAML.
type Duration time.Duration

// String writes the duration as time.Duration.String does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}
