package toollist

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// Kind is what a change does.
type Kind string

// The kinds of changes.
const (
	Added   Kind = "added"
	Changed Kind = "changed"
	Removed Kind = "removed"
)

// Change is one tool that differs.
type Change struct {
	Kind Kind
	// Name is the function's, or the type of another tool.
	Name string
	// Lines are the tool's lines, or those that differ with some around them; each
	// begins with "+", "-" or a space.
	Lines []string
}

// Wanted says what a list should have.
type Wanted struct {
	// Functions are those to be in it as they are registered.
	Functions []call.Function
	// Prune takes out functions that are not Registered.
	Prune      bool
	Registered []string
	// DeferLoading marks Functions as deferred; otherwise those that are there stay as
	// they are in this respect.
	DeferLoading bool
	// ToolSearch adds tool search if it is not there.
	ToolSearch bool
	// Session says that it is the list of a session: there the API hides tool search,
	// and what HTTP headers MCP servers get.
	Session bool
}

// Plan is how to come from one list of tools to another.
type Plan struct {
	Changes []Change
	// Tools is the whole list to be sent.
	Tools []json.RawMessage
	// Hidden names the MCP servers whose headers would be lost, because the API does
	// not show them and takes only whole lists.
	Hidden []string
}

// Compare makes a plan. What is not a function, and functions that nobody asked for,
// stay as they are.
func Compare(current []json.RawMessage, w Wanted) Plan {
	wanted := map[string]call.Function{}
	for _, f := range w.Functions {
		wanted[f.Name] = f
	}
	var p Plan
	deferred, searches := false, false
	for _, raw := range current {
		tool, ok := call.FunctionTool(raw)
		if !ok {
			kind, body := other(raw)
			searches = searches || kind == "tool_search"
			p.Tools = append(p.Tools, body)
			if server := hidden(raw); w.Session && server != "" {
				p.Hidden = append(p.Hidden, server)
			}
			continue
		}
		f, asked := wanted[tool.Name]
		delete(wanted, tool.Name)
		switch {
		case !asked && w.Prune && !slices.Contains(w.Registered, tool.Name):
			p.Changes = append(p.Changes, Change{Removed, tool.Name, marked("-", lines(tool))})
			continue
		case asked:
			now := call.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters, Async: tool.Async, Deferred: tool.Deferred || w.DeferLoading}
			if len(f.Drift(tool)) > 0 || now.Deferred != tool.Deferred {
				p.Changes = append(p.Changes, Change{Changed, tool.Name, diff(lines(tool), lines(now))})
				raw = appendFunction(nil, f, now.Deferred, now.Async)
			}
			deferred = deferred || now.Deferred
		default:
			deferred = deferred || tool.Deferred
		}
		p.Tools = append(p.Tools, raw)
	}
	for _, f := range w.Functions {
		if _, missing := wanted[f.Name]; !missing {
			continue
		}
		delete(wanted, f.Name)
		now := call.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters, Deferred: w.DeferLoading}
		p.Changes = append(p.Changes, Change{Added, f.Name, marked("+", lines(now))})
		p.Tools = append(p.Tools, appendFunction(nil, f, w.DeferLoading, false))
		deferred = deferred || w.DeferLoading
	}
	switch {
	case searches:
	case w.Session:
		if deferred || w.ToolSearch {
			p.Tools = append(p.Tools, toolSearch)
		}
	case w.ToolSearch:
		p.Changes = append(p.Changes, Change{Kind: Added, Name: "tool_search"})
		p.Tools = append(p.Tools, toolSearch)
	}
	return p
}

// other is a tool that is no function, without the members that are null: the API
// shows them, and absent they mean the same.
func other(raw json.RawMessage) (kind string, body json.RawMessage) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return "", raw
	}
	_ = json.Unmarshal(members["type"], &kind)
	whole := len(members)
	for name, value := range members {
		if string(value) == "null" {
			delete(members, name)
		}
	}
	if len(members) == whole {
		return kind, raw
	}
	body, err := json.Marshal(members)
	if err != nil {
		return kind, raw
	}
	return kind, body
}

// hidden is the label of an MCP server that is reached by HTTP. A session shows
// neither its authorization nor its headers.
func hidden(raw json.RawMessage) string {
	var tool struct {
		Type      string `json:"type"`
		Label     string `json:"server_label"`
		Transport struct {
			Type string `json:"type"`
		} `json:"transport"`
	}
	if json.Unmarshal(raw, &tool) != nil || tool.Type != "mcp" || tool.Transport.Type == "stdio" {
		return ""
	}
	return tool.Label
}

// lines show a function.
func lines(t call.Tool) []string {
	var out []string
	if t.Description != "" {
		out = append(out, "description: "+fmt.Sprintf("%q", t.Description))
	}
	if t.Deferred {
		out = append(out, "defer_loading: true")
	}
	if t.Async {
		out = append(out, "async: true")
	}
	return append(out, strings.Split("parameters: "+string(call.SchemaLines(t.Parameters)), "\n")...)
}

func marked(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = mark + " " + line
	}
	return out
}
