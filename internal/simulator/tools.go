package simulator

import (
	"bytes"
	"encoding/json"
)

// maxToolListBytes bounds agent.tools as compact JSON.
const maxToolListBytes = 3 << 20

// tool is one entry of agent.tools. Function tools are taken apart; all others stay as they came.
type tool struct {
	kind        string
	name        string
	description string
	parameters  json.RawMessage
	async       bool
	deferred    bool
	raw         json.RawMessage
}

type toolList []tool

// function returns the function tool of that name.
func (l toolList) function(name string) (tool, bool) {
	for _, t := range l {
		if t.kind == "function" && t.name == name {
			return t, true
		}
	}
	return tool{}, false
}

func (l toolList) append(b []byte, stored bool) []byte {
	first := true
	for i := range l {
		t := &l[i]
		if t.kind == "tool_search" && !stored {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		if t.kind != "function" {
			b = append(b, t.raw...)
			continue
		}
		b = append(b, `{"type":"function"`...)
		b = appendStringField(b, "name", t.name)
		b = appendStringField(b, "description", t.description)
		b = appendBoolField(b, "defer_loading", t.deferred)
		b = appendBoolField(b, "async", t.async)
		b = append(appendRawField(b, "parameters", t.parameters), '}')
	}
	return b
}

func appendBoolField(b []byte, key string, value bool) []byte {
	if value {
		return append(appendKey(b, key), "true"...)
	}
	return append(appendKey(b, key), "false"...)
}

// parseTools reads agent.tools; null is the empty list. Function names are free text, as on the real service; two
// functions of one name are refused.
func parseTools(raw json.RawMessage) (toolList, error) {
	if isNull(raw) {
		return nil, nil
	}
	if len(raw) > maxToolListBytes {
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil || compact.Len() > maxToolListBytes {
			return nil, invalidRequest("agent.tools is larger than %d bytes.", maxToolListBytes)
		}
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, invalidRequest("agent.tools must be an array.")
	}
	tools := make(toolList, 0, len(entries))
	names := make(map[string]struct{}, len(entries))
	for i, entry := range entries {
		var fields struct {
			Type        string          `json:"type"`
			Name        *string         `json:"name"`
			Description *string         `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Async       *bool           `json:"async"`
			Deferred    *bool           `json:"defer_loading"`
		}
		if err := json.Unmarshal(entry, &fields); err != nil {
			return nil, invalidRequest("agent.tools[%d] is not a tool.", i)
		}
		switch {
		case fields.Type == "":
			return nil, invalidRequest("agent.tools[%d].type is required.", i)
		case fields.Type != "function":
			tools = append(tools, tool{kind: fields.Type, raw: entry})
			continue
		case fields.Name == nil:
			return nil, invalidRequest("agent.tools[%d].name is required.", i)
		case isNull(fields.Parameters):
			return nil, invalidRequest("agent.tools[%d].parameters is required.", i)
		case !objectSchema(fields.Parameters):
			return nil, invalidRequest("agent.tools[%d].parameters must be a JSON Schema of type object.", i)
		}
		t := tool{kind: "function", name: *fields.Name, parameters: fields.Parameters}
		if _, known := names[t.name]; known {
			return nil, invalidRequest("duplicate function tool name: %s", t.name)
		}
		names[t.name] = struct{}{}
		if fields.Description != nil {
			t.description = *fields.Description
		}
		t.async = fields.Async != nil && *fields.Async
		t.deferred = fields.Deferred != nil && *fields.Deferred
		tools = append(tools, t)
	}
	return tools, nil
}

// objectSchema accepts a schema object whose type is object or not given.
func objectSchema(raw json.RawMessage) bool {
	var schema struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return false
	}
	return schema.Type == nil || schema.Type == "object"
}
