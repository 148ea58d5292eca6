package main

import (
	"fmt"

	"github.com/callfan/callfan/internal/natsaccess"
	"github.com/callfan/callfan/pkg/queue"
)

type natsCommand struct {
	Permissions natsPermissionsCommand `cmd:"" help:"Print the NATS users that executors need, with exactly the permissions they need. No server is asked."`
}

type natsPermissionsCommand struct {
	Pools       []string `arg:"" name:"pool=functions" help:"A pool with the functions that it serves, such as weather=get_weather,get_forecast."`
	Format      string   `help:"config: users for nats-server's configuration. nsc: commands that make users by JWT. json: the lists." enum:"config,nsc,json" default:"config"`
	Accounts    bool     `help:"Give each pool an account of its own, which imports what it needs: teams that do not trust each other cannot even make the server answer into another's subjects."`
	Account     string   `help:"The account that holds the streams." default:"CALLFAN"`
	NKeys       bool     `name:"nkeys" help:"In a configuration, identify users by nkeys instead of passwords."`
	Prefix      string   `help:"First token of every subject and stream of the installation." default:"fn" env:"CALLFAN_PREFIX"`
	InboxPrefix string   `name:"nats-inbox-prefix" help:"Subject prefix of replies, of one pool. Defaults to _INBOX_ and the pool's name." placeholder:"SUBJECT"`
	APIPrefix   string   `name:"nats-api-prefix" help:"Subject prefix of the JetStream API. Defaults to $$JS.API, with --accounts to the installation's prefix in capitals and .API." placeholder:"SUBJECT"`
}

// Run prints them.
func (c *natsPermissionsCommand) Run(env environment) error {
	options := natsaccess.Options{
		Account: c.Account, Accounts: c.Accounts, NKeys: c.NKeys,
		Installation: queue.Config{Prefix: c.Prefix, InboxPrefix: c.InboxPrefix, APIPrefix: c.APIPrefix},
	}
	text, err := c.text(options)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	_, err = fmt.Fprint(env.stdout, text)
	return err
}

func (c *natsPermissionsCommand) text(options natsaccess.Options) (string, error) {
	pools := make([]natsaccess.Pool, len(c.Pools))
	for i, text := range c.Pools {
		var err error
		if pools[i], err = natsaccess.ParsePool(text); err != nil {
			return "", err
		}
	}
	plan, err := natsaccess.New(pools, options)
	if err != nil {
		return "", err
	}
	switch c.Format {
	case "nsc":
		return plan.NSC(), nil
	case "json":
		return plan.JSON()
	default:
		return plan.Config(), nil
	}
}
