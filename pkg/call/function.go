package call

import (
	"encoding/json"
	"errors"
	"fmt"
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
	// Verifies says that its executors can find out whether an earlier run took effect.
	Verifies bool   `json:"verifies,omitempty"`
	Policy   Policy `json:"policy"`
}

// ErrInvalidFunction is wrapped by the errors of Function.Validate.
var ErrInvalidFunction = errors.New("invalid function")

// Validate names the first thing that is wrong with the declaration. Its errors
// wrap ErrInvalidFunction.
func (f Function) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w %q: %s", ErrInvalidFunction, f.Name, fmt.Sprintf(format, args...))
	}
	if f.Name == "" {
		return bad("the name is empty")
	}
	if err := f.Policy.validate(); err != nil {
		return bad("%v", err)
	}
	if f.Policy.OnUncertain == UncertainVerify && !f.Verifies {
		return bad("on_uncertain is verify, and there is no verify handler; add one, or use fail or rerun")
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
