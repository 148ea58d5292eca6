package toollist

import (
	"bytes"
	"encoding/json"

	"github.com/callfan/callfan/pkg/call"
)

// Options say what a list looks like.
type Options struct {
	// Responses makes the tools of the Responses API instead of agent.tools.
	Responses bool
	// DeferLoading marks each function as one that tool search loads.
	DeferLoading bool
	// ToolSearch adds the tool that loads them.
	ToolSearch bool
}

// Loose is a function whose arguments the Responses API cannot hold to its schema.
type Loose struct {
	Function string
	// Why says what strict mode does not allow, each with its place in the schema.
	Why []string
}

// anyObject is the schema of functions that declare none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// toolSearch is the tool that loads deferred functions.
var toolSearch = json.RawMessage(`{"type":"tool_search"}`)

// Append appends the JSON array of tools, one on each line. Parameters are the very
// bytes that were registered. In the Responses form it also says which functions are
// not strict, and functions with a namespace become tools of it; a name that the API does
// not take is an error.
func Append(dst []byte, functions []call.Function, o Options) ([]byte, []Loose, error) {
	var loose []Loose
	var collected Namespaces
	for _, f := range functions {
		if !o.Responses {
			collected.Add("", appendFunction(nil, f, o.DeferLoading, false))
			continue
		}
		name := f.Name
		space, rest, err := Split(name)
		if err != nil {
			return dst, nil, err
		}
		f.Name = rest
		tool, why := ForResponses(f, o.DeferLoading)
		if len(why) > 0 {
			loose = append(loose, Loose{Function: name, Why: why})
		}
		collected.Add(space, tool)
	}
	tools := collected.Tools()
	if o.ToolSearch {
		tools = append(tools, toolSearch)
	}
	return appendLines(dst, tools), loose, nil
}

func appendLines(dst []byte, tools []json.RawMessage) []byte {
	if len(tools) == 0 {
		return append(dst, "[]\n"...)
	}
	before := "["
	for _, tool := range tools {
		dst = append(append(dst, before+"\n  "...), tool...)
		before = ","
	}
	return append(dst, "\n]\n"...)
}

// Parameters are the schema of a function: what was registered, or that of any object.
func Parameters(f call.Function) json.RawMessage {
	if len(f.Parameters) == 0 {
		return anyObject
	}
	return f.Parameters
}

func appendFunction(dst []byte, f call.Function, deferred, async bool) []byte {
	dst = appendText(append(dst, `{"type":"function","name":`...), f.Name)
	dst = appendText(append(dst, `,"description":`...), f.Description)
	dst = append(append(dst, `,"parameters":`...), Parameters(f)...)
	if async {
		dst = append(dst, `,"async":true`...)
	}
	if deferred {
		dst = append(dst, `,"defer_loading":true`...)
	}
	return append(dst, '}')
}

// appendText appends a JSON string, with < and & as they are.
func appendText(dst []byte, s string) []byte {
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always marshals
	return append(dst, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}
