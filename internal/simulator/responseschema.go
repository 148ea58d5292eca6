package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkParameters holds the schema of a function to what the service demands: an object, and with strict that all
// objects in it are closed and require all of their properties.
func checkParameters(function, param string, raw json.RawMessage, strict bool) error {
	refuse := func(format string, args ...any) error {
		return refused(param, "invalid_function_parameters", "Invalid schema for function '%s': %s", function,
			fmt.Sprintf(format, args...))
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return refuse("it is not an object.")
	}
	if kind, ok := schema["type"].(string); !ok || kind != "object" {
		got := "None"
		if ok {
			got = kind
		}
		return refuse(`schema must be a JSON Schema of 'type: "object"', got 'type: "%s"'.`, got)
	}
	if !strict {
		return nil
	}
	if problem := strictProblem(schema, nil); problem != "" {
		return refuse("%s", problem)
	}
	return nil
}

// strictProblem returns what is against strict in a schema, or nothing.
func strictProblem(schema map[string]any, path []string) string {
	context := "In context=(), "
	if len(path) > 0 {
		context = "In context=('" + strings.Join(path, "', '") + "'), "
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		if closed, given := schema["additionalProperties"].(bool); !given || closed {
			return context + "'additionalProperties' is required to be supplied and to be false."
		}
		required, _ := schema["required"].([]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if !slices.Contains(required, any(name)) {
				return context + "'required' is required to be supplied and to be an array including every key in " +
					"properties. Missing '" + name + "'."
			}
			if inner, ok := properties[name].(map[string]any); ok {
				if problem := strictProblem(inner, append(slices.Clip(path), "properties", name)); problem != "" {
					return problem
				}
			}
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return strictProblem(items, append(slices.Clip(path), "items"))
	}
	return ""
}

// sampleArguments returns the simplest arguments that fit a schema, for calls that a tool_choice forces.
func sampleArguments(raw json.RawMessage, text string) json.RawMessage {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil {
		return json.RawMessage("{}")
	}
	sample, err := json.Marshal(sampleValue(schema, text))
	if err != nil {
		return json.RawMessage("{}")
	}
	return sample
}

func sampleValue(schema map[string]any, text string) any {
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	kind, ok := schema["type"].(string)
	if kinds, several := schema["type"].([]any); several && len(kinds) > 0 {
		kind, ok = kinds[0].(string)
	}
	switch {
	case !ok && schema["properties"] == nil:
		return nil
	case kind == "string":
		return text
	case kind == "number" || kind == "integer":
		return 1
	case kind == "boolean":
		return false
	case kind == "array":
		return []any{}
	case kind == "null":
		return nil
	}
	object := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for name, inner := range properties {
		if inner, ok := inner.(map[string]any); ok && slices.Contains(required, any(name)) {
			object[name] = sampleValue(inner, text)
		}
	}
	return object
}
