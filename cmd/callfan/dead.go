package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/callfan/callfan/internal/ops"
)

type deadCommand struct {
	Admin

	List   deadListCommand   `cmd:"" help:"List dead letters, the newest first, without their bodies."`
	Show   deadShowCommand   `cmd:"" help:"Show a dead letter with its body: arguments or outputs."`
	Replay deadReplayCommand `cmd:"" help:"Publish refused outcomes once more, after the cause was mended. They are checked again."`
	Drop   deadDropCommand   `cmd:"" help:"Delete dead letters."`
}

type deadListCommand struct {
	Function string `help:"Only those of this function." placeholder:"NAME"`
	Limit    int    `help:"How many at most: 1 to 1000." default:"50"`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Run lists dead letters.
func (c *deadListCommand) Run(env environment, parent *commands) error {
	if c.Limit < 1 || c.Limit > ops.MaxDeadLetters {
		return fmt.Errorf("%w: --limit is %d; use 1 to %d", errUsage, c.Limit, ops.MaxDeadLetters)
	}
	client, err := parent.Dead.client()
	if err != nil {
		return err
	}
	letters, err := client.DeadLetters(env.ctx, c.Function, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(letters)
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NUMBER\tBURIED\tFUNCTION\tREASON\tBYTES\tDETAIL")
	for _, l := range letters {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\n", l.Sequence, l.Buried.Format(time.RFC3339), cell(l.Function), cell(l.Reason), l.Size, cell(l.Detail))
	}
	return w.Flush()
}

// cell is a text for a table: a dash for nothing, and in quotes what a terminal could
// take for more than text.
func cell(s string) string {
	switch {
	case s == "":
		return "-"
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return strconv.Quote(s)
	}
	return s
}

// page is a body for a terminal, in quotes where it is no plain text.
func page(body []byte) string {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }
	if !utf8.Valid(body) || bytes.ContainsFunc(body, control) {
		return strconv.Quote(string(body))
	}
	return string(body)
}

type deadShowCommand struct {
	Number uint64 `arg:"" help:"Its number, as list shows it."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run shows one dead letter.
func (c *deadShowCommand) Run(env environment, parent *commands) error {
	client, err := parent.Dead.client()
	if err != nil {
		return err
	}
	l, err := client.DeadLetter(env.ctx, c.Number)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(l)
	}
	size := fmt.Sprint(l.Size)
	if l.Truncated {
		size += ", of which only the beginning was kept"
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"number", fmt.Sprint(l.Sequence)},
		{"buried", l.Buried.Format(time.RFC3339)},
		{"function", cell(l.Function)},
		{"reason", cell(l.Reason)},
		{"detail", cell(l.Detail)},
		{"subject", cell(l.Subject)},
		{"bytes", size},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stdout, "\n%s\n", page(l.Bytes()))
	return err
}

type deadReplayCommand struct {
	Numbers []uint64 `arg:"" name:"number" help:"Their numbers, as list shows them."`
}

// Run replays dead letters, up to the first that cannot be replayed.
func (c *deadReplayCommand) Run(env environment, parent *commands) error {
	client, err := parent.Dead.client()
	if err != nil {
		return err
	}
	for _, number := range c.Numbers {
		if err := client.ReplayDeadLetter(env.ctx, number); err != nil {
			return err
		}
		fmt.Fprintf(env.stdout, "%d is published again; it stays here until it is dropped\n", number)
	}
	return nil
}

type deadDropCommand struct {
	Numbers []uint64 `arg:"" name:"number" help:"Their numbers, as list shows them."`
}

// Run deletes dead letters, up to the first that is not there.
func (c *deadDropCommand) Run(env environment, parent *commands) error {
	client, err := parent.Dead.client()
	if err != nil {
		return err
	}
	for _, number := range c.Numbers {
		if err := client.DropDeadLetter(env.ctx, number); err != nil {
			return err
		}
	}
	return nil
}
