package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/pkg/call"
)

type callsCommand struct {
	Admin

	List callsListCommand `cmd:"" help:"List the recorded calls of a session."`
	Show callsShowCommand `cmd:"" help:"Show a call, and say why it is where it is."`
}

type callsListCommand struct {
	Session string `arg:"" help:"The session's id."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run lists the calls.
func (c *callsListCommand) Run(env environment, parent *commands) error {
	client, err := parent.Calls.client()
	if err != nil {
		return err
	}
	calls, err := client.Calls(env.ctx, c.Session)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(calls)
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CALL\tFUNCTION\tSTATE\tATTEMPT\tCLAIMED\tSINCE")
	for _, k := range calls {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", k.Key, k.Function, k.State, max(k.Attempt, 1), k.Claimed.Format(time.RFC3339), span(k.SinceMS))
	}
	return w.Flush()
}

type callsShowCommand struct {
	Key  string `arg:"" help:"The call's key: SESSION/TURN/CALL."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run shows one call.
func (c *callsShowCommand) Run(env environment, parent *commands) error {
	key, err := call.ParseKey(c.Key)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	client, err := parent.Calls.client()
	if err != nil {
		return err
	}
	k, err := client.Call(env.ctx, key)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(k)
	}
	return showCall(env, k)
}

func showCall(env environment, k ops.Call) error {
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"call", k.Key.String()},
		{"function", k.Function},
		{"state", string(k.State)},
		{"attempt", fmt.Sprintf("%d, hand-over %d", max(k.Attempt, 1), max(k.Handover, 1))},
		{"claimed", fmt.Sprintf("%s (%s ago)", k.Claimed.Format(time.RFC3339), span(k.AgeMS))},
		{"last change", span(k.SinceMS) + " ago"},
		{"outcome", k.Outcome},
		{"reason", k.Reason},
	} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
		}
	}
	fmt.Fprintf(w, "\n%s\n", k.Explanation)
	return w.Flush()
}

func span(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}
