package toollist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of strict schemas, from the guide to structured outputs.
const (
	maxDepth      = 10
	maxProperties = 5000
	maxEnum       = 1000
	maxText       = 120_000
	largeEnum     = 250
	maxLargeEnum  = 15_000
)

// keywords are those that strict schemas may have.
var keywords = []string{
	"type", "title", "description", "enum", "const", "properties", "required", "additionalProperties", "items",
	"anyOf", "$ref", "$defs", "definitions", "$schema", "pattern", "format", "multipleOf", "minimum", "maximum",
	"exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
}

var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// NotStrict says why the Responses API would not take a schema with strict: true;
// nothing when it would. The judgement is by the published subset of JSON Schema, and
// careful: what the guide does not list is not strict.
func NotStrict(schema json.RawMessage) []string {
	var s strictness
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return []string{"the schema is not JSON"}
	}
	node, ok := root.(map[string]any)
	if !ok {
		return []string{"the schema is not an object"}
	}
	if node["type"] != "object" {
		s.say("", `type must be "object"`)
	}
	if _, ok := node["anyOf"]; ok {
		s.say("", "anyOf is not allowed at the root")
	}
	s.node("", root, 1)
	for _, limit := range []struct {
		what      string
		have, max int
	}{{"properties", s.properties, maxProperties}, {"values in enums", s.values, maxEnum}, {"characters in names and values", s.text, maxText}} {
		if limit.have > limit.max {
			s.say("", "%d %s, and %d are allowed", limit.have, limit.what, limit.max)
		}
	}
	return s.why
}

type strictness struct {
	why                      []string
	properties, values, text int
}

func (s *strictness) say(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	s.why = append(s.why, text)
}

// node looks at a schema; path is where it is, depth how many objects and arrays it is in.
func (s *strictness) node(path string, schema any, depth int) {
	node, ok := schema.(map[string]any)
	if !ok {
		s.say(path, "a schema must be an object")
		return
	}
	for _, keyword := range slices.Sorted(maps.Keys(node)) {
		if !slices.Contains(keywords, keyword) {
			s.say(path, "%s is not supported", keyword)
		}
	}
	if ref, ok := node["$ref"]; ok {
		if text, _ := ref.(string); !strings.HasPrefix(text, "#") {
			s.say(path, "$ref must point into the schema")
		}
		if len(node) > 1 && path != "" {
			s.say(path, "$ref must stand alone")
		}
	}
	_, typed := node["type"]
	_, chosen := node["anyOf"]
	_, referred := node["$ref"]
	if !typed && !chosen && !referred {
		s.say(path, "type is missing")
	}
	if format, ok := node["format"].(string); ok && !slices.Contains(formats, format) {
		s.say(path, "format %q is not supported", format)
	}
	s.enum(path, node)
	s.object(path, node, depth)
	s.array(path, node, depth)
	if choices, ok := node["anyOf"].([]any); ok {
		for i, choice := range choices {
			s.node(fmt.Sprintf("%s.anyOf[%d]", path, i), choice, depth)
		}
	}
	for _, name := range []string{"$defs", "definitions"} {
		definitions, _ := node[name].(map[string]any)
		for _, definition := range slices.Sorted(maps.Keys(definitions)) {
			s.text += utf8.RuneCountInString(definition)
			s.node(join(path, name, definition), definitions[definition], 1)
		}
	}
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ".")
}

func (s *strictness) enum(path string, node map[string]any) {
	values, _ := node["enum"].([]any)
	if constant, ok := node["const"]; ok {
		values = append(values, constant)
	}
	size := 0
	for _, value := range values {
		if text, ok := value.(string); ok {
			size += utf8.RuneCountInString(text)
		}
	}
	if len(values) > largeEnum && size > maxLargeEnum {
		s.say(path, "an enum of more than %d values may have %d characters, and this one has %d", largeEnum, maxLargeEnum, size)
	}
	s.values += len(values)
	s.text += size
}

// is says whether a schema's type is, or may be, kind.
func is(node map[string]any, kind string) bool {
	switch t := node["type"].(type) {
	case string:
		return t == kind
	case []any:
		return slices.Contains(t, any(kind))
	}
	return false
}

func (s *strictness) object(path string, node map[string]any, depth int) {
	properties, declared := node["properties"].(map[string]any)
	if !declared && !is(node, "object") {
		return
	}
	switch {
	case !declared:
		s.say(path, "properties is missing")
	case depth > maxDepth:
		s.say(path, "deeper than %d levels", maxDepth)
		return
	}
	if node["additionalProperties"] != false {
		s.say(path, "additionalProperties must be false")
	}
	required, _ := node["required"].([]any)
	s.properties += len(properties)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		at := join(path, name)
		if !slices.Contains(required, any(name)) {
			s.say(at, "must be in required; let it be null instead")
		}
		s.text += utf8.RuneCountInString(name)
		s.node(at, properties[name], depth+1)
	}
	for _, name := range required {
		if text, ok := name.(string); !ok || properties[text] == nil {
			s.say(path, "required names %v, which is no property", name)
		}
	}
}

func (s *strictness) array(path string, node map[string]any, depth int) {
	items, declared := node["items"]
	switch {
	case declared && depth > maxDepth:
		s.say(path, "deeper than %d levels", maxDepth)
	case declared:
		s.node(path+"[]", items, depth+1)
	case is(node, "array"):
		s.say(path, "items is missing")
	}
}
