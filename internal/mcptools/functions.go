package mcptools

import (
	"context"

	"github.com/callfan/callfan/internal/schema"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// Function is one tool as a function.
type Function struct {
	// Name is what the model calls it by, Tool its name at the server.
	Name, Tool string
	Options    []executor.Option
	Handler    executor.Handler
}

// Functions waits for the server and makes functions of its tools, in the order of its
// list. A tool whose schema no dispatcher would accept is left out with a warning,
// unless it is named in Server.Tools. The errors wrap ErrTools, or say why the server
// was not there when ctx ended.
func (c *Client) Functions(ctx context.Context) ([]Function, error) {
	s, err := c.await(ctx, nil)
	if err != nil {
		return nil, err
	}
	tools, err := c.server.selected(s.tools)
	if err != nil {
		return nil, err
	}
	functions := make([]Function, 0, len(tools))
	for _, t := range tools {
		if err := usable(t); err != nil {
			if len(c.server.Tools) > 0 {
				return nil, &unusable{server: c.server.Name, tool: t.name, err: err}
			}
			c.log.Warn("a tool is left out: its schema cannot be used", "tool", t.name, "error", err)
			continue
		}
		functions = append(functions, Function{
			Name: c.server.functionName(t), Tool: t.name, Options: c.server.options(t), Handler: c.handler(t.name),
		})
	}
	c.mu.Lock()
	c.served = tools
	c.mu.Unlock()
	return functions, nil
}

// usable says whether a dispatcher would accept the tool's parameters.
func usable(t tool) error {
	f := call.Function{Name: t.name, Parameters: t.parameters}
	if err := f.Validate(); err != nil {
		return err
	}
	var validator schema.Validator
	return validator.Accept(f)
}

// unusable is a tool that was asked for and cannot be served.
type unusable struct {
	server, tool string
	err          error
}

func (e *unusable) Error() string {
	return "MCP server \"" + e.server + "\": tool \"" + e.tool + "\" cannot be served: " + e.err.Error()
}

func (e *unusable) Unwrap() []error { return []error{ErrTools, e.err} }
