package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/callfan/callfan/pkg/call"
)

// argumentCheck validates arguments against a function's schema.
type argumentCheck struct{ schema *jsonschema.Resolved }

// argumentsOf derives the schema of In into decl, unless it has one, and makes the check.
func argumentsOf[In any](decl *call.Function) (*argumentCheck, error) {
	in := reflect.TypeFor[In]()
	if in == rawMessage {
		return nil, nil
	}
	root := in
	for root.Kind() == reflect.Pointer {
		root = root.Elem()
	}
	if k := root.Kind(); k != reflect.Struct && k != reflect.Map {
		return nil, invalidOption("the arguments are an object, so In must be a struct or a map, not %s", in)
	}
	schema := new(jsonschema.Schema)
	if len(decl.Parameters) > 0 {
		if err := json.Unmarshal(decl.Parameters, schema); err != nil {
			return nil, invalidOption("WithParameters: %v", err)
		}
	} else {
		derived, err := jsonschema.ForType(root, nil)
		if err != nil {
			return nil, invalidOption("no JSON Schema for %s: %v; give one by WithParameters", in, err)
		}
		raw, err := marshal(derived)
		if err != nil {
			return nil, invalidOption("no JSON Schema for %s: %v; give one by WithParameters", in, err)
		}
		decl.Parameters, schema = raw, derived
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, invalidOption("the JSON Schema of the parameters cannot be used: %v", err)
	}
	return &argumentCheck{schema: resolved}, nil
}

// validate says how the arguments do not fit.
func (c *argumentCheck) validate(arguments json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return invalidArguments("not valid JSON: " + err.Error())
	}
	if _, ok := value.(map[string]any); !ok {
		return invalidArguments("want a JSON object")
	}
	if err := c.schema.Validate(numbers(value)); err != nil {
		return invalidArguments(schemaText(err))
	}
	return nil
}

// numbers replaces json.Number, which the schema would take for a string. It keeps
// integers exact; a number beyond float64 becomes infinite, which only the type
// check sees.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := strconv.ParseFloat(v.String(), 64)
		return f
	}
	return v
}

func invalidArguments(text string) error {
	return Failure(call.ReasonInvalidArguments, "invalid arguments: "+text)
}

// schemaText turns the schema library's trail of schema locations into the path of
// the member: "validating root: validating /properties/city: type: …" becomes
// "city: type: …".
func schemaText(err error) string {
	text, path := err.Error(), ""
	for strings.HasPrefix(text, "validating ") {
		location, rest, found := strings.Cut(strings.TrimPrefix(text, "validating "), ": ")
		if !found {
			break
		}
		path, text = location, rest
	}
	if path == "" || path == "root" {
		return text
	}
	var member strings.Builder
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i := 0; i < len(parts); i++ {
		switch {
		case parts[i] == "properties" && i+1 < len(parts):
			i++
			if member.Len() > 0 {
				member.WriteByte('.')
			}
			member.WriteString(strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i]))
		case parts[i] == "items":
			member.WriteString("[]")
		}
	}
	if member.Len() == 0 {
		return text
	}
	return member.String() + ": " + text
}

func unmarshalText(err error) string {
	var mismatch *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &mismatch):
		return err.Error()
	case strings.HasPrefix(mismatch.Value, "number "): // its kind passed the schema
		return fmt.Sprintf("%s: %s is out of range", mismatch.Field, mismatch.Value)
	default:
		return fmt.Sprintf("%s: a %s does not fit", mismatch.Field, mismatch.Value)
	}
}
