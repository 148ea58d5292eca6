package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/toollist"
)

type toolsSyncCommand struct {
	selection
	config.OpenAI `embed:"" group:"OpenAI API"`

	Agent          string `help:"Id of a stored agent." placeholder:"ID" xor:"target" required:""`
	Session        string `help:"Id of a session." placeholder:"ID" xor:"target" required:""`
	Yes            bool   `help:"Do it without asking."`
	Prune          bool   `help:"Also take out functions that are not registered."`
	DeferLoading   bool   `help:"Mark the functions as ones that tool search loads."`
	ToolSearch     bool   `help:"Add the tool that loads deferred functions."`
	DropMCPHeaders bool   `name:"drop-mcp-headers" help:"Go on where MCP servers of the session would lose their authorization and headers."`
}

// target is an agent or a session.
type target struct {
	name string
	get  func(context.Context) ([]json.RawMessage, error)
	set  func(context.Context, []json.RawMessage) ([]json.RawMessage, error)
}

func (c *toolsSyncCommand) target() (target, *agents.Client, error) {
	if c.OpenAIAPIKey.Reveal() == "" && c.OpenAIBaseURL == "" {
		return target{}, nil, fmt.Errorf("%w: set OPENAI_API_KEY, or OPENAI_BASE_URL to a simulator", errUsage)
	}
	client, err := agents.New(agents.Config{
		APIKey: c.OpenAIAPIKey.Reveal(), BaseURL: c.OpenAIBaseURL.Reveal(),
		Organization: c.OpenAIOrganization, Project: c.OpenAIProject, Timeout: c.OpenAITimeout,
	})
	if err != nil {
		return target{}, nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if c.Agent != "" {
		return target{
			name: "agent " + c.Agent,
			get:  func(ctx context.Context) ([]json.RawMessage, error) { return client.AgentTools(ctx, c.Agent) },
			set: func(ctx context.Context, tools []json.RawMessage) ([]json.RawMessage, error) {
				return client.SetAgentTools(ctx, c.Agent, tools)
			},
		}, client, nil
	}
	return target{
		name: "session " + c.Session,
		get:  func(ctx context.Context) ([]json.RawMessage, error) { return client.SessionTools(ctx, c.Session) },
		set: func(ctx context.Context, tools []json.RawMessage) ([]json.RawMessage, error) {
			return client.SetSessionTools(ctx, c.Session, tools)
		},
	}, client, nil
}

var errDeclined = errors.New("nothing was changed")

// Run shows what differs, asks, and replaces the list.
func (c *toolsSyncCommand) Run(env environment, parent *commands) error {
	functions, registered, err := c.pick(env, parent)
	if err != nil {
		return err
	}
	t, client, err := c.target()
	if err != nil {
		return err
	}
	defer client.Close()
	wanted := toollist.Wanted{
		Functions: functions, Registered: registered, Prune: c.Prune,
		DeferLoading: c.DeferLoading, ToolSearch: c.ToolSearch, Session: c.Session != "",
	}
	current, err := t.get(env.ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	plan := toollist.Compare(current, wanted)
	if len(plan.Changes) == 0 {
		fmt.Fprintf(env.stdout, "%s has the functions as they are registered\n", t.name)
		return nil
	}
	printPlan(env, plan)
	if len(plan.Hidden) > 0 && !c.DropMCPHeaders {
		return fmt.Errorf("%w: the API does not show the authorization and headers of the MCP servers %s, and takes only whole lists of tools, so they would be lost; "+
			"update the session where they are known, or give --drop-mcp-headers if they have none", errDeclined, strings.Join(plan.Hidden, ", "))
	}
	if !c.Yes && !confirmed(env, t.name) {
		return errDeclined
	}
	return apply(env, t, current, plan, wanted)
}

// apply replaces the list, unless it changed while somebody thought about it.
func apply(env environment, t target, shown []json.RawMessage, plan toollist.Plan, wanted toollist.Wanted) error {
	now, err := t.get(env.ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	if !slices.EqualFunc(now, shown, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		return fmt.Errorf("%w: the tools of %s changed meanwhile; look again", errDeclined, t.name)
	}
	after, err := t.set(env.ctx, plan.Tools)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	fmt.Fprintf(env.stdout, "%s has %d tools now\n", t.name, len(after))
	for _, left := range toollist.Compare(after, wanted).Changes {
		fmt.Fprintf(env.stderr, "callfan: the API shows %s otherwise than it was sent\n", cell(left.Name))
	}
	return nil
}

func printPlan(env environment, plan toollist.Plan) {
	for _, change := range plan.Changes {
		fmt.Fprintf(env.stdout, "%s %s\n", change.Kind, cell(change.Name))
		for _, line := range change.Lines {
			fmt.Fprintf(env.stdout, "  %s\n", page([]byte(line)))
		}
	}
}

func confirmed(env environment, name string) bool {
	fmt.Fprintf(env.stdout, "Change the tools of %s? [y/N] ", name)
	answer, _ := bufio.NewReader(env.stdin).ReadString('\n') // no answer is a no
	fmt.Fprintln(env.stdout)
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}
