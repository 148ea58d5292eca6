package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/ops/opsclient"
	"github.com/callfan/callfan/internal/runs"
)

type runCommand struct {
	Admin

	Question     string        `arg:"" optional:"" help:"What the model is asked; - reads it from standard input."`
	Model        string        `help:"The model." default:"gpt-6-astra" env:"CALLFAN_MODEL"`
	Tools        []string      `help:"Registered functions that the model may call, such as a,b,c; crm.find is find in the namespace crm." placeholder:"NAME"`
	Instructions string        `help:"Instructions for the model." placeholder:"TEXT"`
	ToolChoice   string        `help:"auto, required, none, or the name of the function to call first." default:"auto"`
	Parallel     bool          `help:"Let a response have several calls." default:"true" negatable:""`
	Store        bool          `help:"Have the API keep the responses; without it the run carries everything along." default:"true" negatable:""`
	Conversation string        `help:"The conversation to add to." placeholder:"ID"`
	Rounds       int           `help:"How many responses at most; 0 is the default, 10." zero:""`
	Calls        int           `help:"How many calls at most; 0 is the default, 100." zero:""`
	Time         time.Duration `help:"Wall time at most; 0 is the default, 30m." zero:""`
	Request      string        `help:"Instead of all that: a file with the request, the body of POST /v1/runs; - reads standard input." placeholder:"FILE"`
	Stream       bool          `help:"Show calls and text as they arrive."`
	JSON         bool          `name:"json" help:"Print the run as JSON."`
	ID           string        `name:"show" help:"Show a run that was started before, instead of starting one; with --stream from its beginning on." placeholder:"ID"`
	Cancel       string        `help:"Cancel a run." placeholder:"ID"`
}

// errRunFailed is the error of a run that has no answer.
var errRunFailed = errors.New("the run has no answer")

// Run starts a run, shows it and prints its answer.
func (c *runCommand) Run(env environment) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	switch {
	case c.Cancel != "":
		_, err := client.CancelRun(env.ctx, c.Cancel)
		return err
	case c.ID != "" && !c.Stream:
		run, err := client.Run(env.ctx, c.ID)
		if err != nil {
			return err
		}
		return c.show(env, run)
	case c.ID != "":
		return c.follow(env, client, c.ID)
	}
	request, err := c.request(env.stdin)
	if err != nil {
		return err
	}
	run, err := client.StartRun(env.ctx, request)
	if err != nil {
		return err
	}
	return c.follow(env, client, run.ID)
}

// follow waits for the end of a run, and shows it on the way there.
func (c *runCommand) follow(env environment, client *opsclient.Client, id string) error {
	view := runView{out: env.stdout, silent: !c.Stream || c.JSON}
	if err := client.FollowRun(env.ctx, id, view.notice); err != nil {
		return fmt.Errorf("the run %s goes on: %w; callfan run --show %s tells how far it is", id, err, id)
	}
	run, err := client.Run(env.ctx, id)
	if err != nil {
		return err
	}
	if view.texted {
		fmt.Fprintln(env.stdout)
		run.Text = ""
	}
	return c.show(env, run)
}

func (c *runCommand) show(env environment, run runs.Run) error {
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(run)
	}
	if run.Text != "" {
		fmt.Fprintln(env.stdout, run.Text)
	}
	if run.Refusal != "" {
		fmt.Fprintln(env.stdout, "The model refuses:", run.Refusal)
	}
	switch {
	case run.Status == runs.Completed:
		return nil
	case !run.Status.Final():
		fmt.Fprintf(env.stdout, "%s: %s, round %d\n", run.ID, run.Status, len(run.Rounds))
		return nil
	}
	return fmt.Errorf("%w: %s is %s: %s", errRunFailed, run.ID, run.Status,
		strings.TrimSuffix(strings.Join([]string{run.Reason, run.Error}, ": "), ": "))
}

// request is the body of POST /v1/runs.
func (c *runCommand) request(stdin io.Reader) (json.RawMessage, error) {
	switch {
	case c.Request == "-":
		return io.ReadAll(stdin)
	case c.Request != "":
		return os.ReadFile(c.Request)
	case c.Question == "":
		return nil, fmt.Errorf("%w: what is the question?", errUsage)
	}
	question := c.Question
	if question == "-" {
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, err
		}
		question = string(text)
	}
	body := map[string]any{
		"model": c.Model, "input": question, "tools": c.Tools, "parallel_tool_calls": c.Parallel, "store": c.Store,
	}
	if c.Instructions != "" {
		body["instructions"] = c.Instructions
	}
	if c.Conversation != "" {
		body["conversation"] = c.Conversation
	}
	switch c.ToolChoice {
	case "auto", "required", "none":
		body["tool_choice"] = c.ToolChoice
	default:
		body["tool_choice"] = map[string]string{"type": "function", "name": c.ToolChoice}
	}
	bounds := map[string]any{}
	if c.Rounds != 0 {
		bounds["rounds"] = c.Rounds
	}
	if c.Calls != 0 {
		bounds["calls"] = c.Calls
	}
	if c.Time != 0 {
		bounds["time"] = c.Time.String()
	}
	body["bounds"] = bounds
	return json.Marshal(body)
}

// runView shows a run as it goes on.
type runView struct {
	out    io.Writer
	silent bool
	texted bool
}

func (v *runView) notice(n runs.Notice) {
	if v.silent {
		return
	}
	switch n.Type {
	case runs.NoticeCall:
		fmt.Fprintf(v.out, "calling %s\n", n.Function)
	case runs.NoticeAnswered:
		fmt.Fprintf(v.out, "%s answered\n", n.Function)
	case runs.NoticeText:
		v.texted = true
		fmt.Fprint(v.out, n.Delta)
	}
}
