// Command dispatcher is the daemon that answers the required actions of OpenAI
// agents' sessions with the functions of your own executors.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/callfan/callfan/internal/app"
	"github.com/callfan/callfan/internal/config"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailed  = 1
	exitInvalid = 2 // flags, variables, files
)

const description = `Watches sessions of the OpenAI Agents API, hands the function calls that they require to executors over NATS, and submits the results in batches.

A setting comes from its flag, else from its environment variable, else from the YAML file of --config, else it has its default.`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	var settings config.Dispatcher
	program := config.Program{Name: "dispatcher", Description: description, Version: config.BuildVersion(), Stdout: stdout}
	_, err := config.Parse(program, &settings, args)
	if errors.Is(err, config.ErrDone) {
		return exitOK
	}
	if err != nil {
		return invalid(stderr, err)
	}
	options, err := app.FromConfig(settings)
	if err != nil {
		return invalid(stderr, err)
	}
	options.Version = config.BuildVersion()
	options.Logger = settings.Logger(stderr)
	d, err := app.New(options)
	if err != nil {
		return invalid(stderr, err)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if settings.CheckConfig {
		if err := d.Check(ctx); err != nil {
			return invalid(stderr, err)
		}
		return exitOK
	}
	if err := d.Run(ctx); err != nil {
		options.Logger.Error("the dispatcher failed", "error", err)
		return exitFailed
	}
	return exitOK
}

func invalid(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "dispatcher: %v\n\nRun dispatcher --help to see every setting.\n", err)
	return exitInvalid
}
