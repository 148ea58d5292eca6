package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/callfan/callfan/pkg/call"
)

// kept is how many compiled schemas a Validator remembers.
const kept = 4096

// Validator checks arguments. Schemas are compiled once, and the latest few thousand are
// kept. Its zero value works; it is safe for concurrent use and must not be copied.
type Validator struct {
	// Logger is told once of each schema that arguments are not checked against.
	// Defaults to slog.Default().
	Logger *slog.Logger

	mu       sync.RWMutex
	compiled map[string]*compiled // by the schema's bytes
}

// compiled is a schema, or why there is none.
type compiled struct {
	once   sync.Once
	schema *jsonschema.Schema
	err    error
	said   sync.Once
}

// Check says how the arguments, a JSON object, do not fit the function's parameters: one
// line for each violation, "/path/to/member: what is expected", at most five lines and
// 2 KiB. It is nil when they fit, when the function has no parameters, and when they
// cannot be judged.
func (v *Validator) Check(f call.Function, arguments json.RawMessage) (err error) {
	if len(f.Parameters) == 0 {
		return nil
	}
	c := v.of(f.Parameters)
	if c.err != nil {
		v.unchecked(c, f, c.err)
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	if !affordable(value) {
		return nil
	}
	defer func() {
		// A call is never lost to the library; the executor checks again.
		if p := recover(); p != nil {
			v.unchecked(c, f, fmt.Errorf("the check panicked: %v", p))
			err = nil
		}
	}()
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](c.schema.Validate(value)); ok {
		return describe(invalid)
	}
	return nil
}

// Accept says why arguments cannot be checked against the parameters of a function that is
// being registered, and how to mend it. It is nil for valid schemas, also those that Check
// cannot judge.
func (v *Validator) Accept(f call.Function) error {
	if len(f.Parameters) == 0 {
		return nil
	}
	c := v.of(f.Parameters)
	if errors.Is(c.err, errBeyond) {
		v.unchecked(c, f, c.err)
		return nil
	}
	return c.err
}

// of is the compiled form of a schema.
func (v *Validator) of(parameters json.RawMessage) *compiled {
	v.mu.RLock()
	c := v.compiled[string(parameters)]
	v.mu.RUnlock()
	if c == nil {
		c = v.remember(string(parameters))
	}
	c.once.Do(func() { c.schema, c.err = compile(parameters) })
	return c
}

func (v *Validator) remember(parameters string) *compiled {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.compiled[parameters]; c != nil {
		return c
	}
	if v.compiled == nil {
		v.compiled = map[string]*compiled{}
	}
	for other := range v.compiled {
		if len(v.compiled) < kept {
			break
		}
		delete(v.compiled, other)
	}
	c := new(compiled)
	v.compiled[parameters] = c
	return c
}

// unchecked says once that calls of a function are published without a check.
func (v *Validator) unchecked(c *compiled, f call.Function, err error) {
	c.said.Do(func() {
		log := v.Logger
		if log == nil {
			log = slog.Default()
		}
		log.Warn("arguments are not checked before the hand-over", "function", f.Name, "error", err)
	})
}
