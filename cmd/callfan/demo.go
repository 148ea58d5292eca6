package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/demo"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

type demoCommand struct {
	Sessions    int            `help:"Make a load of so many sessions instead of asking the two questions." zero:"" placeholder:"N"`
	Calls       int            `help:"Calls of one round, all at once." zero:"" placeholder:"M"`
	Rounds      int            `help:"Rounds of calls in one turn." zero:"" placeholder:"R"`
	HandlerMS   int            `name:"handler-ms" help:"How long a handler takes." zero:"" placeholder:"H"`
	Languages   languageList   `help:"Have one turn answered by executors in several languages at once; alone it means all of them. Works in a checkout of the repository only, after make languages." placeholder:"go,python,…"`
	Responses   bool           `help:"Ask everything a second time at once, by runs of the Responses API that the same executor serves."`
	Concurrency int            `help:"How many handlers run at once." zero:"" placeholder:"N"`
	NATS        config.Address `name:"nats" help:"Use this NATS server instead of the embedded one." env:"CALLFAN_DEMO_NATS" placeholder:"URL"`
	Redis       config.Address `name:"redis" help:"Keep results in this Redis instead of JetStream." env:"CALLFAN_DEMO_REDIS" placeholder:"URL"`
	Profile     string         `help:"Whose behaviour the simulator imitates: openai or openagentcore." enum:"openai,openagentcore" default:"openai"`
	Faults      string         `help:"File with a fault plan of the simulator, in JSON." placeholder:"FILE"`
	Stall       time.Duration  `help:"Give up when nothing has happened for so long." default:"1m"`
	JSON        bool           `name:"json" help:"Print one JSON object with the counts, and nothing else."`
}

// Run shows the demo. It fails when a call was lost or doubled.
func (c *demoCommand) Run(env environment) error {
	logging := quieter(*env.logging)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	options := demo.Options{
		Sessions: c.Sessions, Calls: c.Calls, Rounds: c.Rounds, HandlerMS: c.HandlerMS, Languages: c.Languages, Responses: c.Responses, Concurrency: c.Concurrency,
		NATSURL: c.NATS.Reveal(), Profile: simulator.Profile(c.Profile), Stall: c.Stall,
		JSON: c.JSON, Out: env.stdout,
		WorkerCommand: []string{self, "demo-worker", "--log-level", logging.LogLevel.String(), "--log-format", logging.LogFormat},
		Logger:        logging.Logger(env.stderr).With("part", "demo"),
	}
	if file, ok := env.stdout.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		options.Live = true
		options.Width, _, _ = term.GetSize(int(file.Fd()))
	}
	if c.Redis != "" {
		options.Redis = &redisstore.Config{URL: c.Redis.Reveal()}
	}
	if c.Faults != "" {
		if err := readJSON(c.Faults, &options.Faults); err != nil {
			return err
		}
	}
	if err := options.Validate(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	report, err := demo.Run(env.ctx, options)
	if errors.Is(err, redisstore.ErrInvalidURL) {
		return fmt.Errorf("%w: --redis: %w", errUsage, err)
	}
	return errors.Join(err, report.Err())
}

// languageList is the value of --languages: names with commas between them, or nothing
// for all.
type languageList []string

// Decode implements kong.MapperValue.
func (l *languageList) Decode(ctx *kong.DecodeContext) error {
	*l = demo.Languages()
	if ctx.Scan.Peek().IsValue() {
		*l = strings.Split(ctx.Scan.Pop().String(), ",")
	}
	return nil
}

// quieter is the logging of the demo and its executor: beside a picture of the calls
// only what is wrong is worth a line, unless more was asked for.
func quieter(l config.Logging) config.Logging {
	if l.LogLevel == slog.LevelInfo {
		l.LogLevel = slog.LevelWarn
	}
	return l
}

// workerCommand is the demo's executor process.
type workerCommand struct {
	NATS        config.Address `name:"nats" env:"NATS_URL" required:""`
	Prefix      string         `env:"CALLFAN_PREFIX" default:"fn"`
	Concurrency int            `env:"CALLFAN_CONCURRENCY" default:"64"`
}

// Run serves the demo's functions until its input ends.
func (c *workerCommand) Run(env environment) error {
	return demo.Worker{
		NATSURL: c.NATS.Reveal(), Prefix: c.Prefix, Concurrency: c.Concurrency,
		Logger: env.logging.Logger(env.stderr).With("part", "executor"),
	}.Run(env.ctx, env.stdin, env.stdout)
}
