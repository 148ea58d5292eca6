package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

type callsRerunCommand struct {
	Key string `arg:"" help:"The call's key: SESSION/TURN/CALL."`
	By  string `help:"Who decides, for the call's history." env:"USER" placeholder:"NAME"`
}

// Run has a parked call run again.
func (c *callsRerunCommand) Run(env environment, parent *commands) error {
	return decide(env, parent, c.Key, ops.Decision{Rerun: true, By: c.By})
}

type callsAnswerCommand struct {
	Key        string  `arg:"" help:"The call's key: SESSION/TURN/CALL."`
	Output     *string `help:"The result: this text." placeholder:"TEXT"`
	OutputFile string  `help:"The result: the text of this file, - for standard input." placeholder:"FILE"`
	OutputJSON string  `name:"output-json" help:"The result: the JSON string or array of content parts in this file, - for standard input." placeholder:"FILE"`
	Error      string  `help:"No result, but this text for the model." placeholder:"TEXT"`
	By         string  `help:"Who decides, for the call's history." env:"USER" placeholder:"NAME"`
}

// Run answers a call.
func (c *callsAnswerCommand) Run(env environment, parent *commands) error {
	d, err := c.decision(env)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return decide(env, parent, c.Key, d)
}

func (c *callsAnswerCommand) decision(env environment) (ops.Decision, error) {
	given := 0
	for _, set := range []bool{c.Output != nil, c.OutputFile != "", c.OutputJSON != "", c.Error != ""} {
		if set {
			given++
		}
	}
	d := ops.Decision{Error: c.Error, By: c.By}
	var err error
	switch {
	case given != 1:
		return d, errors.New("give exactly one of --output, --output-file, --output-json and --error")
	case c.Output != nil:
		d.Output, err = text([]byte(*c.Output))
	case c.OutputFile != "":
		var body []byte
		if body, err = input(env, c.OutputFile); err == nil {
			d.Output, err = text(body)
		}
	case c.OutputJSON != "":
		d.OutputJSON, err = input(env, c.OutputJSON)
	}
	return d, err
}

// text is an output of that very text.
func text(body []byte) (json.RawMessage, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("the text is not valid UTF-8, and the API takes no other")
	}
	return executor.Text(string(body)).MarshalJSON()
}

func input(env environment, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(env.stdin)
	}
	return os.ReadFile(path)
}

func decide(env environment, parent *commands, named string, d ops.Decision) error {
	key, err := call.ParseKey(named)
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	client, err := parent.Calls.client()
	if err != nil {
		return err
	}
	if err := client.Decide(env.ctx, key, d); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "decided; callfan calls show %s says what comes of it\n", key)
	return nil
}
