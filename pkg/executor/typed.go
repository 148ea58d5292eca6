package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/callfan/callfan/pkg/call"
)

// Handle adds a function with a typed handler. It must be called before Run; its
// errors are those of HandleRaw.
//
// In is a struct, a map with string keys or json.RawMessage, or a pointer to one.
// The JSON Schema of the parameters is derived from it, unless WithParameters gives
// one: members are required unless marked omitempty or omitzero, unknown members are
// refused, and a `jsonschema:"…"` tag describes a member to the model. Arguments
// that do not fit become a failure that names the member; the handler is not
// called. json.RawMessage takes the bytes as they are and checks nothing.
//
// Out decides what the model gets:
//   - a string is that text, []byte and json.RawMessage are their bytes as the text;
//   - Content is an array of parts;
//   - any other value is its JSON as the text, serialised once;
//   - a nil interface or a nil pointer is no value, "output": null;
//   - a nil slice is the text [] and a nil map is {}: nothing was found.
//
// Bytes of a text that are not valid UTF-8 become U+FFFD. An output that cannot be
// written as JSON is a failure with cause call.ReasonInvalidOutput.
func Handle[In, Out any](ex *Executor, name string, handler func(ctx context.Context, in In) (Out, error), opts ...Option) error {
	if handler == nil {
		return fmt.Errorf("function %q: %w: the handler is nil", name, ErrInvalidOption)
	}
	decl := declaration{Function: call.Function{Name: name}}
	if err := apply(&decl, opts); err != nil {
		return err
	}
	check, err := argumentsOf[In](&decl.Function)
	if err != nil {
		return fmt.Errorf("function %q: %w", name, err)
	}
	return ex.add(decl, func(ctx context.Context, c Call) (Output, error) {
		in, err := decode[In](c.Arguments, check)
		if err != nil {
			return Output{}, err
		}
		out, err := handler(ctx, in)
		if err != nil {
			return Output{}, err
		}
		output, err := outputOf(out)
		if err != nil {
			return Output{}, Failure(call.ReasonInvalidOutput, err.Error())
		}
		return output, nil
	})
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// decode checks and reads the arguments. Its error is the failure for the model.
func decode[In any](arguments json.RawMessage, check *argumentCheck) (In, error) {
	var in In
	if reflect.TypeFor[In]() == rawMessage {
		reflect.ValueOf(&in).Elem().SetBytes(arguments)
		return in, nil
	}
	if trimmed := bytes.TrimSpace(arguments); len(trimmed) == 0 || string(trimmed) == "null" {
		arguments = json.RawMessage("{}")
	}
	if err := check.validate(arguments); err != nil {
		return in, err
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return in, invalidArguments(unmarshalText(err))
	}
	return in, nil
}
