package executor

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// Output is what a successful call gives to the model: a text, content parts, or
// no value. The zero Output is no value, which the API gets as "output": null.
type Output struct{ raw json.RawMessage }

// Text is an output of that very text; "" is an empty text. Each byte that is not
// part of valid UTF-8 becomes U+FFFD, since the API refuses a whole batch of results
// for one of them.
func Text(s string) Output { return Output{raw: appendText(nil, s)} }

// JSON is an output whose text is v as JSON, serialised once, without escaping of
// <, > and &. Its errors are those of encoding/json.
func JSON(v any) (Output, error) {
	text, err := marshal(v)
	if err != nil {
		return Output{}, err
	}
	return Text(string(text)), nil
}

// MarshalJSON gives the output as the API takes it: a JSON string, an array of
// content parts, or null.
func (o Output) MarshalJSON() ([]byte, error) { return o.wire(), nil }

func (o Output) wire() json.RawMessage {
	if o.raw == nil {
		return json.RawMessage("null")
	}
	return o.raw
}

// outputOf turns what a typed handler returned into an output; the rules are in
// the comment of Handle.
func outputOf(v any) (Output, error) {
	switch v := v.(type) {
	case nil:
		return Output{}, nil
	case Output:
		return v, nil
	case string:
		return Text(v), nil
	case json.RawMessage:
		return Text(string(v)), nil
	case []byte:
		return Text(string(v)), nil
	case Content:
		return v.Output()
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer:
		if r.IsNil() {
			return Output{}, nil
		}
		if _, own := v.(json.Marshaler); !own {
			return outputOf(r.Elem().Interface())
		}
	case reflect.String:
		switch v.(type) {
		case json.Marshaler, encoding.TextMarshaler:
		default:
			return Text(r.String()), nil
		}
	case reflect.Slice:
		if r.IsNil() {
			return Text("[]"), nil
		}
	case reflect.Map:
		if r.IsNil() {
			return Text("{}"), nil
		}
	}
	o, err := JSON(v)
	if err != nil {
		return Output{}, fmt.Errorf("the function's output cannot be written as JSON: %w", err)
	}
	return o, nil
}

// marshal is json.Marshal without HTML escaping.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func appendText(dst []byte, s string) []byte {
	text, err := marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return append(dst, text...)
}
