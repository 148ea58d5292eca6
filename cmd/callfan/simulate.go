package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/simulator"
)

type simulateCommand struct {
	Listen  string   `help:"Address to listen on." default:"127.0.0.1:8421" env:"CALLFAN_SIMULATE_LISTEN"`
	Profile string   `help:"Whose behaviour to imitate: openai or openagentcore." enum:"openai,openagentcore" default:"openai"`
	Switch  []string `help:"Set a switch of the profile, such as BatchAtomic=false; can be repeated." placeholder:"NAME=VALUE"`
	Faults  string   `help:"File with a fault plan in JSON; it can be changed later by PUT /_sim/faults." placeholder:"FILE"`

	ModelDelay  time.Duration `help:"Time the model takes for every step of a turn, and for every response." default:"0s" zero:""`
	QueueDelay  time.Duration `help:"Time that background responses stay queued." default:"0s" zero:""`
	StreamDelay time.Duration `help:"Time before every event of a streamed response." default:"0s" zero:""`

	Fixtures bool `help:"Prepare the objects with fixed ids that the tests of openai-go ask for."`
}

// Help is what --help says beside the flags.
func (*simulateCommand) Help() string {
	return "Sessions (Agents API) and responses with function calls (Responses API) have the same model: it answers a few questions " +
		"about the weather, the time and customers, and plays scripts, which are user messages in JSON such as\n\n" +
		`{"rounds":[[{"name":"f","arguments":{}}]],"say":"done"}` + "\n\n" +
		"GET /_sim/stats, /_sim/responses and /_sim/outputs tell what happened. docs/simulator.md says more."
}

// Run serves the simulator until it is told to stop.
func (c *simulateCommand) Run(env environment) error {
	cfg := simulator.Config{
		Profile: simulator.Profile(c.Profile), Fixtures: c.Fixtures,
		ModelDelay: c.ModelDelay, QueueDelay: c.QueueDelay, StreamDelay: c.StreamDelay,
		Logger: env.logging.Logger(env.stderr),
	}
	switches, err := setSwitches(cfg.Profile.Switches(), c.Switch)
	if err != nil {
		return err
	}
	cfg.Switches = &switches
	if c.Faults != "" {
		if err := readJSON(c.Faults, &cfg.Faults); err != nil {
			return err
		}
	}
	sim, err := simulator.New(cfg)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	defer sim.Close()
	return serve(env.ctx, c.Listen, sim.Handler(), func(address string) {
		fmt.Fprintf(env.stdout, "The simulator listens on http://%s/v1 (profile %s).\n"+
			"export OPENAI_BASE_URL=http://%s/v1 OPENAI_API_KEY=any\n", address, c.Profile, address)
	})
}

// serve answers HTTP on an address until ctx ends.
func serve(ctx context.Context, address string, handler http.Handler, listening func(address string)) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w; choose another address", err)
	}
	listening(listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// setSwitches changes switches by the names of their fields.
func setSwitches(switches simulator.Switches, settings []string) (simulator.Switches, error) {
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return switches, fmt.Errorf("%w: --switch %q: use NAME=VALUE", errUsage, setting)
		}
		if !json.Valid([]byte(value)) {
			quoted, err := json.Marshal(value)
			if err != nil {
				return switches, err
			}
			value = string(quoted)
		}
		decoder := json.NewDecoder(strings.NewReader(fmt.Sprintf("{%q:%s}", name, value)))
		decoder.DisallowUnknownFields()
		if _, known := reflect.TypeFor[simulator.Switches]().FieldByName(name); !known {
			return switches, fmt.Errorf("%w: --switch %q: no such switch; there are %s", errUsage, setting, switchNames())
		}
		if err := decoder.Decode(&switches); err != nil {
			return switches, fmt.Errorf("%w: --switch %q: %w", errUsage, setting, err)
		}
	}
	return switches, nil
}

func switchNames() string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[simulator.Switches]()) {
		names = append(names, field.Name)
	}
	return strings.Join(names, ", ")
}

func readJSON(path string, into any) error {
	file, err := os.Open(path) //nolint:gosec // the user's own file
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%w: %s: %w", errUsage, path, err)
	}
	return nil
}
