package conformance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Version is the version of protocol/conformance.md that this suite follows.
const Version = 1

// Level says how much of the suite an executor is held to.
type Level string

// The levels.
const (
	// LevelCore is what keeps calls safe.
	LevelCore Level = "core"
	// LevelFull is everything. The default.
	LevelFull Level = "full"
)

// Executor says what is to be checked, and how much of it. Its zero value lacks the
// Command only.
type Executor struct {
	// Command is the conformance executor, as sh -c takes it. Required.
	Command string
	// Dir is its working directory. Defaults to that of this process.
	Dir string
	// Env are further variables of the form NAME=value, beside those of this process
	// without the ones that begin with NATS_, CALLFAN_, CONFORMANCE_ and EXECUTOR_.
	Env []string
	// Level defaults to LevelFull.
	Level Level
	// Exclude has the tests that the executor cannot pass, with the reasons; they are
	// skipped. A test that does not exist and an empty reason are errors.
	Exclude map[string]string
	// Only selects tests by their names. Defaults to all.
	Only *regexp.Regexp
	// Parallel is how many scenes, each with its own server and processes, run at once.
	// Defaults to 4.
	Parallel int
	// Done is told about each test as it ends. It must not block. Defaults to nobody.
	Done func(Result)
}

// ErrInvalidExecutor is wrapped by errors about an Executor that cannot be checked;
// nothing was started.
var ErrInvalidExecutor = errors.New("invalid conformance run")

// Test is one thing that the suite checks.
type Test struct {
	Name  string
	Level Level
}

// Tests lists the suite's tests by name.
func Tests() []Test {
	var tests []Test
	for _, s := range scenes() {
		for _, c := range s.checks {
			tests = append(tests, Test{Name: c.name, Level: c.level})
		}
	}
	slices.SortFunc(tests, func(a, b Test) int { return strings.Compare(a.Name, b.Name) })
	return tests
}

// suiteTimeout ends a suite that hangs in spite of the bounds of its waits.
const suiteTimeout = 5 * time.Minute

// Check runs the suite. Failed tests are in the report; the error is about the
// Executor, wrapping ErrInvalidExecutor, or the cause of ctx's end. All processes are
// gone when it returns.
func (e Executor) Check(ctx context.Context) (Report, error) {
	e, err := e.withDefaults()
	if err != nil {
		return Report{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, suiteTimeout)
	defer cancel()
	began := time.Now()
	p := &play{executor: e, full: e.Level == LevelFull}
	slots := make(chan struct{}, e.Parallel)
	var group sync.WaitGroup
	for _, s := range scenes() {
		checks := p.selected(s)
		if len(checks) == 0 {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			p.perform(bounded, s, checks)
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return Report{}, err
	}
	return p.report(time.Since(began)), nil
}

func (e Executor) withDefaults() (Executor, error) {
	bad := func(format string, args ...any) (Executor, error) {
		return e, fmt.Errorf("%w: %s", ErrInvalidExecutor, fmt.Sprintf(format, args...))
	}
	if strings.TrimSpace(e.Command) == "" {
		return bad("there is no command; name the conformance executor")
	}
	switch e.Level {
	case "":
		e.Level = LevelFull
	case LevelCore, LevelFull:
	default:
		return bad("the level is %q; use core or full", e.Level)
	}
	known := map[string]bool{}
	for _, t := range Tests() {
		known[t.Name] = true
	}
	for name, reason := range e.Exclude {
		switch {
		case !known[name]:
			return bad("there is no test %q to exclude; remove it from the exclusions", name)
		case strings.TrimSpace(reason) == "":
			return bad("the exclusion of %q has no reason; say why the executor cannot pass it", name)
		}
	}
	if e.Parallel < 1 {
		e.Parallel = 4
	}
	return e, nil
}
