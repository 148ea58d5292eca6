package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/ops/opsclient"
)

type sessionsCommand struct {
	Admin

	Watch   watchCommand   `cmd:"" help:"Have sessions watched."`
	Unwatch unwatchCommand `cmd:"" help:"Stop watching sessions."`
	List    listCommand    `cmd:"" help:"List the watched sessions."`
}

// Admin says where the dispatcher's admin API is.
type Admin struct {
	URL   string        `name:"dispatcher" help:"Address of a dispatcher's admin API." default:"http://127.0.0.1:8420" env:"CALLFAN_DISPATCHER"`
	Token config.Secret `name:"admin-token-file" help:"File with the token of the admin API. The token itself is taken from CALLFAN_ADMIN_TOKEN." secret:"CALLFAN_ADMIN_TOKEN" env:"CALLFAN_ADMIN_TOKEN_FILE" placeholder:"FILE"`
}

// AfterApply makes the address available to the subcommands.
func (a *Admin) client() (*opsclient.Client, error) {
	return opsclient.New(opsclient.Config{URL: a.URL, Token: a.Token.Reveal()})
}

type watchCommand struct {
	IDs []string `arg:"" name:"id" help:"Session ids."`
}

// Run attaches the sessions.
func (c *watchCommand) Run(env environment, parent *commands) error {
	client, err := parent.Sessions.client()
	if err != nil {
		return err
	}
	return client.Watch(env.ctx, c.IDs...)
}

type unwatchCommand struct {
	IDs []string `arg:"" name:"id" help:"Session ids."`
}

// Run detaches the sessions.
func (c *unwatchCommand) Run(env environment, parent *commands) error {
	client, err := parent.Sessions.client()
	if err != nil {
		return err
	}
	return client.Unwatch(env.ctx, c.IDs...)
}

type listCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the sessions.
func (c *listCommand) Run(env environment, parent *commands) error {
	client, err := parent.Sessions.client()
	if err != nil {
		return err
	}
	sessions, err := client.Sessions(env.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(env.stdout).Encode(sessions)
	}
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tPARTITION\tSTATUS\tOPEN\tPARKED\tSAVED\tLOOKED AT\tTROUBLE\tDRIFT")
	for _, s := range sessions {
		looked := "-"
		if !s.Retrieved.IsZero() {
			looked = s.Retrieved.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", s.ID, s.Partition, s.Status, s.Open, s.Parked, s.Saved, looked, s.Trouble, cell(strings.Join(s.Drift, ", ")))
	}
	return w.Flush()
}
