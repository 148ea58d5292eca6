// Command executor runs the functions of a YAML file: programs, HTTP endpoints and the
// tools of MCP servers, in any language, that answer the function calls of OpenAI agents.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/executorapp"
	"github.com/callfan/callfan/pkg/executor"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailed  = 1
	exitInvalid = 2 // flags, variables, files
)

const description = `Runs the functions of a YAML file, each a program, an HTTP endpoint or a tool of an MCP server, for the calls that a dispatcher hands over by NATS. It needs no key of the OpenAI API.

A setting comes from its flag, else from its environment variable, else from the YAML file of --config, else it has its default.`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	var settings executorapp.Settings
	program := config.Program{Name: "executor", Description: description, Version: config.BuildVersion(), Stdout: stdout}
	_, err := config.Parse(program, &settings, args)
	if errors.Is(err, config.ErrDone) {
		return exitOK
	}
	if err != nil {
		return invalid(stderr, err)
	}
	log := settings.Logger(stderr)
	app, err := executorapp.New(settings, config.BuildVersion(), log)
	if err != nil {
		return invalid(stderr, err)
	}
	if settings.Check {
		return exitOK
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	work := app.Run
	if settings.Register {
		work = app.Register
	}
	switch err := work(ctx); {
	case errors.Is(err, executor.ErrInvalidConfig):
		return invalid(stderr, err)
	case err != nil:
		log.Error("the executor failed", "error", err)
		return exitFailed
	}
	return exitOK
}

func invalid(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "executor: %v\n\nRun executor --help to see every setting.\n", err)
	return exitInvalid
}
