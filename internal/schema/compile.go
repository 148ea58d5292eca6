package schema

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// MaxSchema is the size in bytes beyond which a schema is not compiled. The library's time
// grows with the square of the number of subschemas.
const MaxSchema = 256 << 10

// errBeyond marks schemas that may be valid and that this package does not understand.
var errBeyond = errors.New("beyond what can be checked")

// location stands for the schema in the library; references in it are resolved against it.
const location = "parameters:///schema"

// compile makes a schema of the parameters. Its error names the place and the remedy.
func compile(parameters []byte) (schema *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil { // for example a limit like 1e9999999
			schema, err = nil, fmt.Errorf("the JSON Schema of the parameters cannot be used: %v", p)
		}
	}()
	if len(parameters) > MaxSchema {
		return nil, fmt.Errorf("%w: the schema has %d bytes, limit %d", errBeyond, len(parameters), MaxSchema)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(parameters))
	if err != nil {
		return nil, fmt.Errorf("the JSON Schema of the parameters is not JSON: %w", err)
	}
	if !affordable(doc) {
		return nil, fmt.Errorf("%w: a number of more than %d digits", errBeyond, maxDigits)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuse{})
	for _, name := range asserted {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	var patterns patterns
	c.UseRegexpEngine(patterns.compile)
	if err = c.AddResource(location, doc); err != nil {
		return nil, fmt.Errorf("the JSON Schema of the parameters cannot be used: %w", err)
	}
	schema, err = c.Compile(location)
	patterns.compiled = true
	var unreachable *jsonschema.LoadURLError
	switch {
	case errors.As(err, &unreachable):
		return nil, fmt.Errorf("the JSON Schema of the parameters refers to %s, and nothing is loaded from elsewhere; put it under $defs",
			clip(unreachable.URL, maxPath))
	case err != nil:
		return nil, fmt.Errorf("the JSON Schema of the parameters is not valid: %s", clip(err.Error(), maxText))
	case patterns.unknown != nil:
		return nil, fmt.Errorf("%w: %w", errBeyond, patterns.unknown)
	}
	return schema, nil
}

// refuse loads nothing, so that no schema makes a dispatcher open files or connections.
type refuse struct{}

func (refuse) Load(string) (any, error) { return nil, errors.New("nothing is loaded") }

// asserted are the formats that the library asserts in drafts before 2019-09.
var asserted = []string{
	"json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6", "hostname", "email",
	"date", "time", "date-time", "uri", "iri", "uri-reference", "iri-reference", "uri-template", "semver",
}

// patterns compiles the regular expressions of one schema and remembers the first that Go
// does not know. They are not errors: they may be good ECMA 262.
type patterns struct {
	unknown error
	// compiled: what follows are values with "format": "regex", which are not asserted.
	compiled bool
}

func (p *patterns) compile(expression string) (jsonschema.Regexp, error) {
	if p.compiled {
		return anything{}, nil
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		if p.unknown == nil {
			p.unknown = errors.New(clip(err.Error(), maxText))
		}
		return anything{}, nil
	}
	return re, nil
}

// anything stands for an expression that nothing is ever matched against.
type anything struct{}

func (anything) MatchString(string) bool { return true }
func (anything) String() string          { return "" }
