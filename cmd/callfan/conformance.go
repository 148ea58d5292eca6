package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/callfan/callfan/pkg/conformance"
)

type conformanceCommand struct {
	Executor string `help:"The conformance executor, as sh -c takes it; see protocol/conformance.md." placeholder:"COMMAND"`
	Exclude  string `help:"YAML or JSON file of tests that the executor cannot pass, with the reasons." placeholder:"FILE"`
	Level    string `help:"What the executor is held to: core or full." default:"full" enum:"core,full"`
	Only     string `name:"run" help:"Run only the tests whose names match the regular expression." placeholder:"REGEX"`
	Parallel int    `help:"How many servers with their executors run at once." default:"4"`
	JSON     bool   `name:"json" help:"Print the JSON line only."`
	List     bool   `help:"List the tests and exit."`
}

// Run checks the executor and prints a table and one line of JSON.
func (c *conformanceCommand) Run(env environment) error {
	if c.List {
		for _, t := range conformance.Tests() {
			fmt.Fprintf(env.stdout, "%s\t%s\n", t.Level, t.Name)
		}
		return nil
	}
	e := conformance.Executor{Command: c.Executor, Level: conformance.Level(c.Level), Parallel: c.Parallel}
	var err error
	if c.Exclude != "" {
		if e.Exclude, err = conformance.ReadExclusions(c.Exclude); err != nil {
			return fmt.Errorf("%w: --exclude: %w", errUsage, err)
		}
	}
	if c.Only != "" {
		if e.Only, err = regexp.Compile(c.Only); err != nil {
			return fmt.Errorf("%w: --run: %w", errUsage, err)
		}
	}
	report, err := e.Check(env.ctx)
	if errors.Is(err, conformance.ErrInvalidExecutor) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	if !c.JSON {
		if err := report.Write(env.stdout); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(env.stdout).Encode(report); err != nil {
		return err
	}
	if !report.OK() {
		return fmt.Errorf("%d conformance tests failed", len(report.Names(conformance.Failed)))
	}
	return nil
}
