package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// Options say what the demo shows.
type Options struct {
	// Sessions, Calls (at once in each round), Rounds and HandlerMS make a load when
	// Sessions is not 0; otherwise the two questions are asked.
	Sessions, Calls, Rounds, HandlerMS int
	// Languages has one turn answered by executors in these languages, of Languages, in
	// place of the two questions. They come from the checkout that the working directory
	// is in (else ErrNoCheckout), and must have been prepared by `make languages`.
	Languages []string
	// Responses asks everything a second time at once, by runs of the Responses API.
	Responses bool
	// Concurrency is how many handlers run at once. Defaults to 64, or to all calls of
	// a round when they take time.
	Concurrency int
	// NATSURL and Redis use real servers in place of the embedded NATS with its
	// key-value store.
	NATSURL string
	Redis   *redisstore.Config
	// Profile and Faults of the simulator.
	Profile simulator.Profile
	Faults  simulator.Faults
	// Stall is how long nothing may happen before the demo gives up. Defaults to 60 s.
	Stall time.Duration
	// JSON leaves only the report, as one object.
	JSON bool
	// Live redraws a table instead of printing lines.
	Live bool
	// Width is the terminal's width, for Live.
	Width int
	Out   io.Writer
	// WorkerCommand runs this program's hidden worker command.
	WorkerCommand []string
	Logger        *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Sessions > 0 {
		o.Calls, o.Rounds = cmp.Or(o.Calls, 1), cmp.Or(o.Rounds, 1)
	}
	if o.Concurrency == 0 {
		o.Concurrency = 64
		if o.HandlerMS > 0 {
			o.Concurrency = min(max(64, o.asked()*o.Calls), 2000)
		}
	}
	o.Stall = cmp.Or(o.Stall, time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate says what cannot be done as asked, in the words of the command line.
func (o Options) Validate() error {
	var errs []error
	atLeast := func(name string, n, least int) {
		if n < least {
			errs = append(errs, fmt.Errorf("--%s is %d; use %d or more", name, n, least))
		}
	}
	atLeast("sessions", o.Sessions, 0)
	atLeast("calls", o.Calls, 0)
	atLeast("rounds", o.Rounds, 0)
	atLeast("handler-ms", o.HandlerMS, 0)
	atLeast("concurrency", o.Concurrency, 0)
	if o.Stall < 0 {
		errs = append(errs, fmt.Errorf("--stall is %v; use a positive duration", o.Stall))
	}
	if o.Sessions == 0 && (o.Calls > 0 || o.Rounds > 0 || o.HandlerMS > 0) {
		errs = append(errs, errors.New("--calls, --rounds and --handler-ms belong to a load; say how large by --sessions"))
	}
	if len(o.Languages) > 0 {
		if o.Sessions > 0 {
			errs = append(errs, errors.New("--languages shows one turn; leave out --sessions"))
		}
		if o.Responses {
			errs = append(errs, errors.New("--languages shows one turn; leave out --responses"))
		}
		_, err := chosen(o.Languages)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// calls is how many calls the demo will make.
func (o Options) calls() int { return o.asked() * o.Calls * o.Rounds }

// asked is how many sessions and runs a load has.
func (o Options) asked() int {
	if o.Responses {
		return 2 * o.Sessions
	}
	return o.Sessions
}
