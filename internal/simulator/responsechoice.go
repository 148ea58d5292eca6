package simulator

import (
	"encoding/json"
	"fmt"
)

// toolChoice is what tool_choice lets the model do.
type toolChoice struct {
	none     bool
	required bool // at least one call
	limited  bool // to allowed
	allowed  []responseTool
}

// permits reports whether the model may call a tool.
func (c *toolChoice) permits(t responseTool) bool {
	if c.none {
		return false
	}
	if !c.limited {
		return true
	}
	for _, a := range c.allowed {
		if a.kind == t.kind && a.name == t.name && a.namespace == t.namespace {
			return true
		}
	}
	return false
}

// parseToolChoice reads tool_choice; absent is auto. A choice that names a tool which is not in tools is refused.
func parseToolChoice(raw json.RawMessage, tools []responseTool) (toolChoice, error) {
	if isNull(raw) {
		return toolChoice{}, nil
	}
	var mode string
	if json.Unmarshal(raw, &mode) == nil {
		return choiceMode(mode, "tool_choice", tools)
	}
	var fields struct {
		Type      string            `json:"type"`
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Mode      string            `json:"mode"`
		Tools     []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return toolChoice{}, refused("tool_choice", "invalid_type", "Invalid type for 'tool_choice': expected a string or an object.")
	}
	switch fields.Type {
	case "":
		return toolChoice{}, missing("tool_choice.type")
	case "allowed_tools":
		return choiceAllowed(fields.Mode, fields.Tools, tools)
	}
	t, err := chosenTool(fields.Type, fields.Namespace, fields.Name, "tool_choice", tools)
	if err != nil {
		return toolChoice{}, err
	}
	return toolChoice{required: true, limited: true, allowed: []responseTool{t}}, nil
}

func choiceMode(mode, param string, tools []responseTool) (toolChoice, error) {
	switch mode {
	case "auto":
		return toolChoice{}, nil
	case "none":
		return toolChoice{none: true}, nil
	case "required":
		if len(tools) == 0 {
			return toolChoice{}, refused(param, "", "Tool choice 'required' must be specified with 'tools' parameter.")
		}
		return toolChoice{required: true}, nil
	default:
		return toolChoice{}, invalidValue(param, mode, "'none', 'auto', and 'required'")
	}
}

func choiceAllowed(mode string, entries []json.RawMessage, tools []responseTool) (toolChoice, error) {
	choice := toolChoice{limited: true, required: mode == "required"}
	switch {
	case mode == "":
		return choice, missing("tool_choice.mode")
	case mode != "auto" && mode != "required":
		return choice, invalidValue("tool_choice.mode", mode, "'auto' and 'required'")
	case len(entries) == 0:
		return choice, missing("tool_choice.tools")
	}
	for i, entry := range entries {
		var fields struct {
			Type      string `json:"type"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		}
		param := fmt.Sprintf("tool_choice.tools[%d]", i)
		if err := json.Unmarshal(entry, &fields); err != nil {
			return choice, refused(param, "invalid_type", "Invalid type for '%s': expected an object.", param)
		}
		t, err := chosenTool(fields.Type, fields.Namespace, fields.Name, param, tools)
		if err != nil {
			return choice, err
		}
		choice.allowed = append(choice.allowed, t)
	}
	return choice, nil
}

// chosenTool finds the tool that a choice names; hosted tools are named by their type.
func chosenTool(kind, namespace, name, param string, tools []responseTool) (responseTool, error) {
	named := kind == "function" || kind == "custom"
	if named && name == "" {
		return responseTool{}, missing(param + ".name")
	}
	for _, t := range tools {
		if t.kind == kind && (!named || t.name == name && (namespace == "" || t.namespace == namespace)) {
			return t, nil
		}
	}
	if !named {
		name = kind
	}
	return responseTool{}, refused("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", name)
}
