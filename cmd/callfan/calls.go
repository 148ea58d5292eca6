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

	List   callsListCommand   `cmd:"" help:"List the recorded calls of a session, or those of all sessions in a state, the oldest first."`
	Show   callsShowCommand   `cmd:"" help:"Show a call and its history, and say why it is where it is."`
	Rerun  callsRerunCommand  `cmd:"" help:"Have a parked call run again: it did not take effect."`
	Answer callsAnswerCommand `cmd:"" help:"Answer a call in place of its executor."`
}

type callsListCommand struct {
	Session string `arg:"" optional:"" help:"The session's id."`
	State   string `help:"Instead: the calls of all sessions in this state, such as parked, or open for all that wait for a result." placeholder:"STATE"`
	Limit   int    `help:"With --state, how many at most: 1 to 1000." default:"100"`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run lists the calls.
func (c *callsListCommand) Run(env environment, parent *commands) error {
	if (c.Session == "") == (c.State == "") {
		return fmt.Errorf("%w: give either a session's id or --state", errUsage)
	}
	if c.Limit < 1 || c.Limit > ops.MaxCalls {
		return fmt.Errorf("%w: --limit is %d; use 1 to %d", errUsage, c.Limit, ops.MaxCalls)
	}
	client, err := parent.Calls.client()
	if err != nil {
		return err
	}
	var list ops.CallList
	if c.State == "" {
		list.Calls, err = client.Calls(env.ctx, c.Session)
	} else if _, err = ops.States(c.State); err != nil {
		err = fmt.Errorf("%w: --%w", errUsage, err)
	} else {
		list, err = client.CallsIn(env.ctx, c.State, c.Limit)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(list.Calls)
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CALL\tFUNCTION\tSTATE\tATTEMPT\tCLAIMED\tSINCE")
	for _, k := range list.Calls {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", k.Key, cell(k.Function), k.State, max(k.Attempt, 1), k.Claimed.Format(time.RFC3339), span(k.SinceMS))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if list.More {
		fmt.Fprintf(env.stderr, "there are more; these are the oldest %d (--limit)\n", len(list.Calls))
	}
	return nil
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
		{"function", cell(k.Function)},
		{"state", string(k.State)},
		{"attempt", fmt.Sprintf("%d, hand-over %d", max(k.Attempt, 1), max(k.Handover, 1))},
		{"claimed", fmt.Sprintf("%s (%s ago)", k.Claimed.Format(time.RFC3339), span(k.AgeMS))},
		{"last change", span(k.SinceMS) + " ago"},
		{"idempotency key", k.IdempotencyKey()},
		{"outcome", k.Outcome},
		{"reason", cell(k.Reason)},
	} {
		if row[1] != "" && row[1] != "-" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
		}
	}
	if len(k.History) > 0 {
		fmt.Fprintln(w, "\nTIME\tSINCE CLAIM\tSTATE\tATTEMPT\tNOTE")
	}
	for _, s := range k.History {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.At.Format("2006-01-02T15:04:05.000Z07:00"),
			s.At.Sub(k.Claimed).Round(time.Millisecond), s.State, attempt(s), cell(s.Note))
	}
	fmt.Fprintf(w, "\n%s\n", cell(k.Explanation))
	return w.Flush()
}

// attempt is the number of a step's attempt, with that of its hand-over unless it is
// the first.
func attempt(s ops.Step) string {
	if s.Handover > 1 {
		return fmt.Sprintf("%d.%d", max(s.Attempt, 1), s.Handover)
	}
	return fmt.Sprint(max(s.Attempt, 1))
}

func span(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}
