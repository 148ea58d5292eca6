package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// Bounds of what is read of a server's list.
const (
	maxTools = 10_000
	maxPages = 1_000
)

// ErrTools is wrapped by the errors of Client.Functions that another attempt would not
// mend: the server's tools are not what the configuration names.
var ErrTools = errors.New("the tools are not as configured")

// tool is one tool as its server lists it.
type tool struct {
	name, description string
	parameters        json.RawMessage
	readOnly, again   bool // its annotations
}

// list reads all pages of the server's tools, in its order.
func list(ctx context.Context, session *mcp.ClientSession) ([]tool, error) {
	var tools []tool
	seen := make(map[string]bool)
	params := new(mcp.ListToolsParams)
	for page := 0; ; page++ {
		result, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, t := range result.Tools {
			if !seen[t.Name] {
				seen[t.Name] = true
				tools = append(tools, toolOf(t))
			}
		}
		switch {
		case result.NextCursor == "":
			return tools, nil
		case len(tools) > maxTools || page >= maxPages || result.NextCursor == params.Cursor:
			return nil, fmt.Errorf("the server's list of tools does not end: %d tools on %d pages", len(tools), page+1)
		}
		params = &mcp.ListToolsParams{Cursor: result.NextCursor}
	}
}

func toolOf(t *mcp.Tool) tool {
	out := tool{name: t.Name, description: t.Description, parameters: rawOf(t.Meta, t.InputSchema)}
	if out.description == "" {
		out.description = t.Title
	}
	if a := t.Annotations; a != nil {
		out.readOnly, out.again = a.ReadOnlyHint, a.IdempotentHint
		if out.description == "" {
			out.description = a.Title
		}
	}
	return out
}

// selected are the tools that the configuration takes. Its errors wrap ErrTools.
func (s Server) selected(tools []tool) ([]tool, error) {
	names := make(map[string]bool, len(tools))
	for _, t := range tools {
		names[t.name] = true
	}
	there := func() string { return strings.Join(slices.Sorted(maps.Keys(names)), ", ") }
	for _, name := range s.Tools {
		if !names[name] {
			return nil, fmt.Errorf("%w: MCP server %q has no tool %q; it has: %s", ErrTools, s.Name, name, there())
		}
	}
	if len(s.Tools) > 0 {
		tools = slices.DeleteFunc(slices.Clone(tools), func(t tool) bool { return !slices.Contains(s.Tools, t.name) })
	}
	for name := range s.Overrides {
		if !slices.ContainsFunc(tools, func(t tool) bool { return t.name == name }) {
			return nil, fmt.Errorf("%w: MCP server %q serves no tool %q, which has an override; it has: %s", ErrTools, s.Name, name, there())
		}
	}
	return tools, nil
}

// functionName is what the model calls the tool by.
func (s Server) functionName(t tool) string {
	if name := s.Overrides[t.name].Name; name != "" {
		return name
	}
	return s.Prefix + t.name
}

// options declare the function of the tool.
func (s Server) options(t tool) []executor.Option {
	opts := []executor.Option{executor.WithDescription(t.description)}
	if len(t.parameters) > 0 {
		opts = append(opts, executor.WithParameters(t.parameters))
	}
	opts = append(opts, s.Options...)
	if s.TrustAnnotations {
		switch {
		case t.readOnly:
			opts = append(opts, executor.WithEffects(call.EffectsNone))
		case t.again:
			opts = append(opts, executor.WithEffects(call.EffectsIdempotent))
		}
	}
	return append(opts, s.Overrides[t.name].Options...)
}

// changes names how the tools differ from those that are served.
func (s Server) changes(served, now []tool) (added, removed, changed []string) {
	before := make(map[string]tool, len(served))
	for _, t := range served {
		before[t.name] = t
	}
	for _, t := range now {
		old, had := before[t.name]
		delete(before, t.name)
		switch {
		case !had:
			added = append(added, t.name)
		case s.fingerprint(old) != s.fingerprint(t):
			changed = append(changed, t.name)
		}
	}
	return added, slices.Sorted(maps.Keys(before)), changed
}

// fingerprint is the same for tools that make the same function.
func (s Server) fingerprint(t tool) string {
	f := call.Function{Name: t.name, Description: t.description, Parameters: t.parameters}
	if s.TrustAnnotations && t.readOnly {
		f.Policy.Effects = call.EffectsNone
	} else if s.TrustAnnotations && t.again {
		f.Policy.Effects = call.EffectsIdempotent
	}
	return f.Fingerprint()
}
