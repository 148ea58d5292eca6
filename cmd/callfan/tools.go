package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callfan/callfan/internal/toollist"
	"github.com/callfan/callfan/pkg/call"
)

type toolsCommand struct {
	Admin

	Print toolsPrintCommand `cmd:"" default:"withargs" help:"Print the tools of registered functions, as agent.tools. callfan tools sync brings those of an agent or a session in line."`
	Sync  toolsSyncCommand  `cmd:"" help:"Bring the tools of an agent or of a session in line with the registered functions."`
}

// selection says which functions are meant.
type selection struct {
	Functions []string `arg:"" optional:"" name:"function" help:"Names of functions. Defaults to all that are registered."`
	Pool      string   `help:"Only those of this pool." placeholder:"NAME"`
}

// pick gives the functions that are meant, and the names of all that are registered.
func (s selection) pick(env environment, parent *commands) (picked []call.Function, registered []string, err error) {
	client, err := parent.Tools.client()
	if err != nil {
		return nil, nil, err
	}
	all, err := client.Functions(env.ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range all {
		registered = append(registered, f.Name)
		named := len(s.Functions) == 0 || slices.Contains(s.Functions, f.Name)
		if named && (s.Pool == "" || s.Pool == f.Pool) {
			picked = append(picked, f.Function)
		}
	}
	for _, name := range s.Functions {
		if !slices.ContainsFunc(picked, func(f call.Function) bool { return f.Name == name }) {
			return nil, nil, fmt.Errorf("%w: no function %q is registered%s; there are: %s", errUsage, name, s.where(), strings.Join(registered, ", "))
		}
	}
	if len(picked) == 0 {
		return nil, nil, fmt.Errorf("%w: no function is registered%s", errUsage, s.where())
	}
	return picked, registered, nil
}

func (s selection) where() string {
	if s.Pool == "" {
		return ""
	}
	return fmt.Sprintf(" by pool %q", s.Pool)
}

type toolsPrintCommand struct {
	selection

	Responses    bool `help:"Print the tools of the Responses API, strict where the schema allows it; why it does not is said on standard error."`
	DeferLoading bool `help:"Mark the functions as ones that tool search loads."`
	ToolSearch   bool `help:"Add the tool that loads deferred functions."`
}

// Run prints the tools.
func (c *toolsPrintCommand) Run(env environment, parent *commands) error {
	functions, _, err := c.pick(env, parent)
	if err != nil {
		return err
	}
	list, loose, err := toollist.Append(nil, functions, toollist.Options{
		Responses: c.Responses, DeferLoading: c.DeferLoading, ToolSearch: c.ToolSearch,
	})
	if err != nil {
		return err
	}
	for _, l := range loose {
		fmt.Fprintf(env.stderr, "callfan: %s is not strict: %s\n", cell(l.Function), strings.Join(l.Why, "; "))
	}
	_, err = env.stdout.Write(list)
	return err
}
