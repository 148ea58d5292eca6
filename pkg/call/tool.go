package call

import (
	"bytes"
	"encoding/json"
)

// Tool is a function as the list of tools of an agent or a session shows it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Async       bool            `json:"async"`
	Deferred    bool            `json:"defer_loading"`
}

// FunctionTools reads the functions of a list of tools; tools of other types, and what
// is no tool, are left out.
func FunctionTools(list []json.RawMessage) []Tool {
	var tools []Tool
	for _, raw := range list {
		if tool, ok := FunctionTool(raw); ok {
			tools = append(tools, tool)
		}
	}
	return tools
}

// FunctionTool reads one tool, if it is a function.
func FunctionTool(raw json.RawMessage) (Tool, bool) {
	var wire struct {
		Type string `json:"type"`
		Tool
	}
	err := json.Unmarshal(raw, &wire)
	return wire.Tool, err == nil && wire.Type == "function" && wire.Name != ""
}

// Drift names where the tool, as the model has it, differs from the function as it is
// registered: in its description and in its parameters.
func (f Function) Drift(t Tool) []string {
	return difference(nil, "",
		map[string]any{"description": t.Description, "parameters": canonicalSchema(t.Parameters)},
		map[string]any{"description": f.Description, "parameters": canonicalSchema(f.Parameters)})
}

// SchemaLines are the lines of a JSON Schema for readers: indented, with the members in
// order of their names.
func SchemaLines(schema json.RawMessage) []byte {
	var lines bytes.Buffer
	_ = json.Indent(&lines, encoded(canonicalSchema(schema)), "", "  ") // what was JSON becomes it again
	return lines.Bytes()
}
