// Command callfan is for people: it shows callfan at work, serves developers of
// executors, and asks a running dispatcher.
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
)

// The exit codes.
const (
	exitOK      = 0
	exitFailed  = 1
	exitInvalid = 2 // flags, variables, files
)

const description = `Runs the function calls of OpenAI agents on your own workers.

A setting comes from its flag, else from its environment variable, else from the YAML file of --config, else it has its default.`

// commands are what callfan can be asked to do.
type commands struct {
	config.Common
	config.Logging `embed:"" group:"Logging"`

	Demo        demoCommand        `cmd:"" help:"Show calls travel: NATS, simulator, dispatcher and an executor on this machine, no API key needed."`
	Dev         devCommand         `cmd:"" help:"Run everything but your executors, for writing them on a laptop."`
	Simulate    simulateCommand    `cmd:"" help:"Serve the simulator of OpenAI's Agents and Responses APIs."`
	Ask         askCommand         `cmd:"" help:"Ask an agent that has all registered functions, and print its calls and its answer."`
	Check       checkCommand       `cmd:"" help:"Make a call travel through a running installation, at the cost of one small request to the API."`
	Calls       callsCommand       `cmd:"" help:"Show the calls of a session, or one call and why it is where it is."`
	Conformance conformanceCommand `cmd:"" help:"Check that an executor, in any language, keeps to the protocol."`
	Dead        deadCommand        `cmd:"" help:"List, show, replay or drop messages that could not be used."`
	Functions   functionsCommand   `cmd:"" help:"List the functions that executors have registered, or show one."`
	NATS        natsCommand        `cmd:"" name:"nats" help:"Print what NATS has to allow executors."`
	Run         runCommand         `cmd:"" help:"Have a question answered by the Responses API with registered functions."`
	Sessions    sessionsCommand    `cmd:"" help:"Watch sessions, or list those that are watched."`
	Tools       toolsCommand       `cmd:"" help:"Print the tools of registered functions for agents, or bring those of an agent in line."`

	DemoWorker workerCommand `cmd:"" name:"demo-worker" hidden:""`
}

// environment is what commands run in.
type environment struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	logging        *config.Logging
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var settings commands
	program := config.Program{Name: "callfan", Description: description, Version: config.BuildVersion(), Stdout: stdout}
	parsed, err := config.Parse(program, &settings, args)
	if errors.Is(err, config.ErrDone) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "callfan: %v\n\nRun callfan --help to see the commands, callfan COMMAND --help for one of them.\n", err)
		return exitInvalid
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err = parsed.Run(environment{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, logging: &settings.Logging})
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "callfan: %v\n", err)
		return exitInvalid
	default:
		fmt.Fprintf(stderr, "callfan: %v\n", err)
		return exitFailed
	}
}

// errUsage marks errors about what was asked for.
var errUsage = errors.New("invalid use")
