package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/callfan/callfan/internal/ask"
	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/pkg/call"
)

type askCommand struct {
	askAgent `embed:""`

	Text string `arg:"" help:"The question."`
}

// askAgent says which agent is asked, and which dispatcher answers its calls.
type askAgent struct {
	Admin
	config.OpenAI `embed:"" group:"OpenAI API"`

	Model string `help:"Model of the agent." default:"gpt-6-astra" env:"CALLFAN_MODEL"`
}

// Run asks an agent that has all registered functions, and prints its calls and its
// answer.
func (c *askCommand) Run(env environment) error {
	dispatcher, err := c.client()
	if err != nil {
		return err
	}
	registered, err := dispatcher.Functions(env.ctx)
	if err != nil {
		return err
	}
	functions := make([]call.Function, len(registered))
	for i, f := range registered {
		functions[i] = f.Function
	}
	api, err := c.openAI()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(env.ctx, c.OpenAITimeout*10)
	defer cancel()
	answer, err := ask.Ask(ctx, api, ask.Question{
		Model: c.Model, Text: c.Text, Functions: functions,
		Watch: func(ctx context.Context, session string) error { return dispatcher.Watch(ctx, session) },
	})
	if err != nil {
		return err
	}
	for _, f := range answer.Calls {
		mark := "="
		if f.Failed {
			mark = "failed:"
		}
		fmt.Fprintf(env.stdout, "%s(%s) %s %s\n", f.Function, f.Arguments, mark, f.Result)
	}
	fmt.Fprintln(env.stdout, answer.Text)
	return nil
}

func (c *askAgent) openAI() (openai.Client, error) {
	key := c.OpenAIAPIKey.Reveal()
	if key == "" && c.OpenAIBaseURL == "" {
		return openai.Client{}, fmt.Errorf("%w: set OPENAI_API_KEY, or OPENAI_BASE_URL to a simulator", errUsage)
	}
	if key == "" {
		key = "none"
	}
	options := []option.RequestOption{
		option.WithAPIKey(key), option.WithOrganization(c.OpenAIOrganization), option.WithProject(c.OpenAIProject),
	}
	if c.OpenAIBaseURL != "" {
		options = append(options, option.WithBaseURL(c.OpenAIBaseURL.Reveal()))
	}
	if c.OpenAITimeout <= 0 {
		return openai.Client{}, errors.New("the timeout must be positive")
	}
	return openai.NewClient(options...), nil
}
