package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/internal/app"
	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/embedded"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/pkg/queue"
)

type devCommand struct {
	Dir            string `help:"Directory for everything that survives a restart." default:".callfan" env:"CALLFAN_DEV_DIR"`
	NATSListen     string `name:"nats-listen" help:"Address of the embedded NATS for executors." default:"127.0.0.1:4222" env:"CALLFAN_DEV_NATS_LISTEN"`
	SimulateListen string `name:"simulate-listen" help:"Address of the simulator, which is used when there is no API key." default:"127.0.0.1:8421" env:"CALLFAN_DEV_SIMULATE_LISTEN"`

	config.OpenAI     `embed:"" group:"OpenAI API"`
	config.Sessions   `embed:"" group:"Sessions to watch"`
	config.Calls      `embed:"" group:"Calls and results"`
	config.Operations `embed:"" group:"Operations"`
}

const devPartitions = 8

// Run serves developers until it is told to stop.
func (c *devCommand) Run(env environment) (err error) {
	log := env.logging.Logger(env.stderr)
	nats, err := embedded.Start(embedded.Config{Dir: filepath.Join(c.Dir, "nats"), Listen: c.NATSListen, Logger: log})
	if err != nil {
		return err
	}
	defer nats.Stop()

	simulated := c.OpenAIAPIKey.Reveal() == "" && c.OpenAIBaseURL == ""
	api := "the OpenAI API"
	if c.OpenAIBaseURL != "" {
		api = c.OpenAIBaseURL.String()
	}
	group, ctx := errgroup.WithContext(env.ctx)
	if simulated {
		sim, err := c.openSimulator(ctx, group, env)
		if err != nil {
			return err
		}
		defer sim.Close()
		c.OpenAIBaseURL = config.Address("http://" + c.SimulateListen + "/v1")
		api = "the simulator, " + string(c.OpenAIBaseURL)
	}
	d, err := c.dispatcher(nats, simulated, env)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	group.Go(func() error { return d.Run(ctx) })
	select {
	case <-d.Started():
		c.welcome(env, api, nats.URL(), d.Addr(), simulated)
	case <-ctx.Done():
	}
	return group.Wait()
}

// openSimulator serves the simulator on its own address until ctx ends.
func (c *devCommand) openSimulator(ctx context.Context, group *errgroup.Group, env environment) (*simulator.Simulator, error) {
	sim, err := simulator.New(simulator.Config{
		StateFile: filepath.Join(c.Dir, "simulator.json"), Logger: env.logging.Logger(env.stderr),
	})
	if err != nil {
		return nil, err
	}
	listening := make(chan string, 1)
	failed := make(chan error, 1)
	group.Go(func() error {
		err := serve(ctx, c.SimulateListen, sim.Handler(), func(address string) { listening <- address })
		failed <- err
		return err
	})
	select {
	case c.SimulateListen = <-listening:
		return sim, nil
	case err := <-failed:
		sim.Close()
		return nil, errors.Join(err, env.ctx.Err())
	}
}

func (c *devCommand) dispatcher(nats *embedded.Server, simulated bool, env environment) (*app.Dispatcher, error) {
	opts, err := app.FromConfig(config.Dispatcher{
		OpenAI: c.OpenAI, Sessions: c.Sessions, Calls: c.Calls, Operations: c.Operations,
	})
	if err != nil {
		return nil, err
	}
	opts.Name, opts.Version = "dev", config.BuildVersion()
	opts.Queue = queue.Config{InProcess: nats, Partitions: devPartitions}
	opts.Logger = env.logging.Logger(env.stderr)
	if simulated {
		// Every session of the simulator is the developer's.
		opts.Selectors = append(opts.Selectors, sources.Selector{})
		opts.PollInterval = min(opts.PollInterval, time.Second)
	}
	return app.New(opts)
}

func (c *devCommand) welcome(env environment, api, natsURL, admin string, simulated bool) {
	fmt.Fprintf(env.stdout, `callfan is ready.

  API            %s
  NATS           %s
  health, admin  http://%s
  state          %s

An executor needs only this:
  export NATS_URL=%s
`, api, natsURL, admin, c.Dir, natsURL)
	if simulated {
		fmt.Fprintf(env.stdout, `
An agent's session is made with any OpenAI client; sessions of the simulator are watched by themselves:
  export OPENAI_BASE_URL=%s OPENAI_API_KEY=any
`, c.OpenAIBaseURL)
		return
	}
	fmt.Fprint(env.stdout, "\nHave a session watched by: callfan sessions watch ID\n")
}
