package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/callfan/callfan/internal/ops"
)

type functionsCommand struct {
	Admin

	List functionsListCommand `cmd:"" help:"List the registered functions."`
	Show functionsShowCommand `cmd:"" help:"Show a function: its definition, who serves it, and the policy in force."`
}

func (c *functionsCommand) all(env environment) ([]ops.Function, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	return client.Functions(env.ctx)
}

type functionsListCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the functions.
func (c *functionsListCommand) Run(env environment, parent *commands) error {
	functions, err := parent.Functions.all(env)
	if err != nil {
		return err
	}
	if c.JSON {
		body, err := ops.AppendFunctions(nil, functions)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.stdout, "%s\n", body)
		return err
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FUNCTION\tPOOL\tLANGUAGE\tEFFECTS\tON UNCERTAIN\tATTEMPTS\tVERSION\tEXECUTORS\tLAST SEEN\tDESCRIPTION")
	for _, f := range functions {
		p := f.Effective
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\t%s\n", cell(f.Name), f.Pool, cell(f.Language), p.Effects, p.OnUncertain, p.Attempts,
			cell(f.Version), len(f.Executors), seen(f.Seen()), cell(f.Description))
	}
	return w.Flush()
}

type functionsShowCommand struct {
	Name string `arg:"" help:"The function's name."`
}

// Run shows one function.
func (c *functionsShowCommand) Run(env environment, parent *commands) error {
	functions, err := parent.Functions.all(env)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range functions {
		if f.Name == c.Name {
			return show(env, f)
		}
		names = append(names, f.Name)
	}
	return fmt.Errorf("%w: no function %q is registered; there are: %s", errUsage, c.Name, strings.Join(names, ", "))
}

// seen is a time for a table.
func seen(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.Format(time.RFC3339)
}

func show(env environment, f ops.Function) error {
	p := f.Effective
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"function", cell(f.Name)},
		{"description", cell(f.Description)},
		{"pool", f.Pool},
		{"declared by", cell(strings.TrimSpace(f.Language + " " + f.Version))},
		{"changed", f.Changed.Format(time.RFC3339)},
		{"last seen", seen(f.Seen())},
		{"timeout", p.Timeout.String()},
		{"queue timeout", p.QueueTimeout.String()},
		{"total deadline", p.TotalDeadline.String()},
		{"attempts", fmt.Sprint(p.Attempts)},
		{"backoff", fmt.Sprintf("%s, × %g, at most %s, ± %g%%", p.Backoff.Initial, p.Backoff.Multiplier, p.Backoff.Max, 100*p.Backoff.Jitter)},
		{"effects", string(p.Effects)},
		{"on uncertain", string(p.OnUncertain)},
		{"parameters", string(f.Parameters)},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	if len(f.Executors) > 0 {
		fmt.Fprintln(w, "\nEXECUTOR\tLANGUAGE\tVERSION\tHOST\tLAST SEEN\tDEFINITION")
	}
	for _, e := range f.Executors {
		definition := "in force"
		if !e.Current {
			definition = "another"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", cell(e.ID), cell(e.Language), cell(e.Version), cell(e.Host), seen(e.Seen), definition)
	}
	return w.Flush()
}
