package simulator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	maxToolName      = 128
	maxNamespaceName = 64
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// hostedTools are run by the service. This simulator takes their definitions and never calls them.
var hostedTools = []string{
	"apply_patch", "code_interpreter", "computer", "computer_use", "computer_use_preview", "file_search", "image_generation",
	"local_shell", "mcp", "programmatic_tool_calling", "shell", "web_search", "web_search_2025_08_26", "web_search_preview",
	"web_search_preview_2025_03_11",
}

// responseTool is what a model can call: a function, a custom tool, or the search for tools. All other tools are known
// by their type only.
type responseTool struct {
	kind       string
	namespace  string
	name       string
	parameters json.RawMessage
	async      bool
	deferred   bool
	execution  string // of tool_search
}

// toolFields are the fields of any tool definition that matter here.
type toolFields struct {
	Type        string          `json:"type"`
	Name        *string         `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	Async       *bool           `json:"async"`
	Deferred    *bool           `json:"defer_loading"`
	Execution   *string         `json:"execution"`
	Tools       json.RawMessage `json:"tools"`
}

// parseResponseTools reads tools, at the parameter of that name. lax takes any parameters, as openai-go's own tests need.
func parseResponseTools(raw json.RawMessage, param string, lax bool) ([]responseTool, error) {
	tools, err := readTools(raw, param, "", lax)
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		same := func(other responseTool) bool {
			return t.name != "" && other.name == t.name && other.namespace == t.namespace
		}
		if slices.IndexFunc(tools, same) < i && t.name != "" {
			return nil, refused(param, "invalid_value", "Duplicate tool name: '%s'. Tool names must be unique.", t.name)
		}
	}
	return tools, nil
}

func readTools(raw json.RawMessage, param, namespace string, lax bool) ([]responseTool, error) {
	if isNull(raw) {
		return nil, nil
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, refused(param, "invalid_type", "Invalid type for '%s': expected an array of objects.", param)
	}
	var tools []responseTool
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", param, i)
		var fields toolFields
		if err := json.Unmarshal(entry, &fields); err != nil {
			return nil, refused(at, "invalid_type", "Invalid type for '%s': expected a tool definition.", at)
		}
		read, err := fields.read(at, namespace, lax)
		if err != nil {
			return nil, err
		}
		tools = append(tools, read...)
	}
	return tools, nil
}

// read returns the tools of one definition: one, or those of a namespace.
func (f *toolFields) read(at, namespace string, lax bool) ([]responseTool, error) {
	isSet := func(b *bool) bool { return b != nil && *b }
	switch {
	case f.Type == "":
		return nil, missing(at + ".type")
	case f.Type == "tool_search" && namespace == "":
		t := responseTool{kind: f.Type, parameters: f.Parameters, execution: "server"}
		if f.Execution != nil {
			t.execution = *f.Execution
		}
		if t.execution != "server" && t.execution != "client" {
			return nil, invalidValue(at+".execution", t.execution, "'server' and 'client'")
		}
		return []responseTool{t}, nil
	case slices.Contains(hostedTools, f.Type) && namespace == "":
		return []responseTool{{kind: f.Type}}, nil
	case f.Type != "function" && f.Type != "custom" && (f.Type != "namespace" || namespace != ""):
		accepted := "'function', 'custom', 'namespace', 'tool_search', '" + strings.Join(hostedTools, "', '") + "'"
		if namespace != "" {
			accepted = "'function' and 'custom'"
		}
		return nil, invalidValue(at+".type", f.Type, accepted)
	}
	limit := maxToolName
	if f.Type == "namespace" {
		limit = maxNamespaceName
	}
	if err := checkToolName(f.Name, at+".name", limit); err != nil {
		return nil, err
	}
	if f.Type == "namespace" {
		if isNull(f.Tools) {
			return nil, missing(at + ".tools")
		}
		return readTools(f.Tools, at+".tools", *f.Name, lax)
	}
	t := responseTool{
		kind: f.Type, namespace: namespace, name: *f.Name, parameters: f.Parameters, async: isSet(f.Async),
		deferred: isSet(f.Deferred),
	}
	if t.kind == "function" && !lax && !isNull(f.Parameters) {
		if err := checkParameters(t.name, at+".parameters", f.Parameters, isSet(f.Strict)); err != nil {
			return nil, err
		}
	}
	return []responseTool{t}, nil
}

func checkToolName(name *string, param string, limit int) error {
	switch {
	case name == nil:
		return missing(param)
	case *name == "":
		return refused(param, "empty_string",
			"Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
	case len(*name) > limit:
		return tooLong(param, limit, len(*name))
	case !toolName.MatchString(*name):
		return refused(param, "invalid_value",
			"Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", param, toolName)
	}
	return nil
}

func tooLong(param string, limit, got int) *apiError {
	return refused(param, "string_above_max_length",
		"Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.",
		param, limit, got)
}

// find returns the tool of that name; without a namespace any namespace will do.
func findTool(tools []responseTool, namespace, name string) (responseTool, bool) {
	for _, t := range tools {
		if t.name == name && name != "" && (namespace == "" || t.namespace == namespace) {
			return t, true
		}
	}
	return responseTool{}, false
}

// search returns the tool_search of the request.
func searchTool(tools []responseTool) (responseTool, bool) {
	i := slices.IndexFunc(tools, func(t responseTool) bool { return t.kind == "tool_search" })
	if i < 0 {
		return responseTool{}, false
	}
	return tools[i], true
}
