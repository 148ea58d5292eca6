package functionfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/processgroup"
	"github.com/callfan/callfan/internal/retryafter"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// The exit statuses of sysexits.h that mean more than a failure.
const (
	exitInvalidArguments = 65 // EX_DATAERR
	exitRetry            = 75 // EX_TEMPFAIL
)

// pipesLinger is how long the output of a program is awaited after it exited, in
// case it left children that hold its pipes.
const pipesLinger = 500 * time.Millisecond

// program runs one function as a process per call.
type program struct {
	path   string // absolute
	args   []string
	dir    string
	env    []string
	format outputFormat
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (l loader) exec(at entry, where string) (*program, error) {
	entries, err := l.mapping(at.value, where)
	if err != nil {
		return nil, err
	}
	p := &program{dir: l.dir, format: formatText}
	var command entry
	for _, e := range entries {
		switch e.name {
		case "command":
			command = e
		case "dir":
			p.dir, err = l.directory(e, where+": dir")
		case "env":
			p.env, err = l.environment(e, where+": env")
		case "output":
			p.format, err = l.format(e, where+": output")
		default:
			err = l.unknownKey(e, where, []string{"command", "dir", "env", "output"})
		}
		if err != nil {
			return nil, err
		}
	}
	if command.value == nil {
		return nil, l.fault(at.key, "%s: command is missing; add `command: [PROGRAM, ARGUMENT, …]`", where)
	}
	if err := l.command(p, command, where+": command"); err != nil {
		return nil, err
	}
	return p, nil
}

// command reads the words of the command and finds the program.
func (l loader) command(p *program, e entry, where string) error {
	values, err := l.sequence(e.value, where)
	if err != nil {
		return err
	}
	words := make([]string, 0, len(values))
	for _, v := range values {
		word, err := l.text(v, where)
		if err != nil {
			return err
		}
		words = append(words, word)
	}
	if len(words) == 0 || words[0] == "" {
		return l.fault(e.key, "%s is empty; name the program", where)
	}
	p.args = words[1:]
	name := words[0]
	if strings.ContainsAny(name, `/\`) && !filepath.IsAbs(name) {
		name = filepath.Join(p.dir, name)
	}
	p.path, err = exec.LookPath(name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return l.fault(values[0], "%s: the program %s is not executable; run chmod +x on it", where, name)
	case errors.Is(err, exec.ErrNotFound):
		return l.fault(values[0], "%s: the program %q is not in PATH; install it or write its path", where, words[0])
	default:
		return l.fault(values[0], "%s: the program %s does not exist; relative paths count from dir, which defaults to the file's directory", where, name)
	}
}

func (l loader) directory(e entry, where string) (string, error) {
	dir, err := l.text(e.value, where)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(l.dir, dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", l.fault(e.value, "%s: %s is not a directory; relative paths count from the file's directory", where, dir)
	}
	return dir, nil
}

func (l loader) environment(e entry, where string) ([]string, error) {
	entries, err := l.mapping(e.value, where)
	if err != nil {
		return nil, err
	}
	env := make([]string, 0, len(entries))
	for _, v := range entries {
		switch {
		case !variableName.MatchString(v.name):
			return nil, l.fault(v.key, "%s: %q is not the name of a variable; use letters, digits and underscores", where, v.name)
		case strings.HasPrefix(v.name, "FN_") || v.name == "IDEMPOTENCY_KEY" || v.name == "TRACEPARENT":
			return nil, l.fault(v.key, "%s: %s is set for each call; choose another name", where, v.name)
		}
		value, err := l.text(v.value, where+": "+v.name)
		if err != nil {
			return nil, err
		}
		if value, err = l.expand(v.value, value, where+": "+v.name); err != nil {
			return nil, err
		}
		if strings.ContainsRune(value, 0) {
			return nil, l.fault(v.value, "%s: %s contains a NUL character; no program can be given one", where, v.name)
		}
		env = append(env, v.name+"="+value)
	}
	return env, nil
}

func (l loader) format(e entry, where string) (outputFormat, error) {
	text, err := l.text(e.value, where)
	if err != nil {
		return "", err
	}
	switch f := outputFormat(text); f {
	case formatText, formatContent, formatNone:
		return f, nil
	}
	return "", l.fault(e.value, "%s is %q; use text, content or none", where, text)
}

// run starts the program with the arguments on its standard input. What it writes
// to its standard output and an exit status of 0 are a success; see the guide to
// the functions file for the rest.
func (p *program) run(ctx context.Context, c executor.Call) (executor.Output, error) {
	end := p.execute(ctx, callEnvironment(c), c.Arguments)
	switch {
	case ctx.Err() != nil:
		return executor.Output{}, context.Cause(ctx)
	case end.tooLarge:
		return executor.Output{}, tooLarge()
	case end.notStarted != nil:
		return executor.Output{}, executor.Retry(fmt.Errorf("the function's program could not be started: %w", end.notStarted), time.Second)
	case end.failed != nil:
		return executor.Output{}, executor.Retry(fmt.Errorf("the function's program failed: %w", end.failed), 0)
	case end.state.ExitCode() == 0:
		return p.format.output(end.stdout)
	case end.state.ExitCode() == exitRetry:
		reason, after := splitRetryAfter(end.stderr, time.Now())
		return executor.Output{}, executor.Retry(errors.New(orElse(reason, "the function failed for now")), after)
	case end.state.ExitCode() == exitInvalidArguments:
		return executor.Output{}, invalidArguments(orElse(end.stderr, exitText(end.state)))
	case end.state.ExitCode() < 0: // ended by a signal
		return executor.Output{}, executor.Failure(call.ReasonPanic, fmt.Sprintf("function crashed (%s)", end.state))
	default:
		return executor.Output{}, errors.New(orElse(end.stderr, exitText(end.state)))
	}
}

var retryAfterLine = regexp.MustCompile(`(?i)(?:^|\n)retry-after:([^\n]*)$`)

// splitRetryAfter takes a last line "Retry-After: 30" off a program's standard error.
// Beside the exit status that is the one thing of a program which also comes through
// ssh, docker run and the like.
func splitRetryAfter(stderr string, now time.Time) (reason string, after time.Duration) {
	at := retryAfterLine.FindStringSubmatchIndex(stderr)
	if at == nil {
		return stderr, 0
	}
	after, ok := retryafter.Parse(stderr[at[2]:at[3]], now)
	if !ok {
		return stderr, 0
	}
	return strings.TrimSpace(stderr[:at[0]]), after
}

func exitText(state *os.ProcessState) string {
	return fmt.Sprintf("exited with status %d", state.ExitCode())
}

// programEnd is what one run of a program came to.
type programEnd struct {
	stdout []byte
	stderr string // its end, as a text
	// state is set unless notStarted or failed is.
	state    *os.ProcessState
	tooLarge bool
	// notStarted and failed are errors of the operating system.
	notStarted, failed error
}

// execute runs the program to its end, or kills it when ctx ends or it writes too much.
func (p *program) execute(ctx context.Context, env []string, input []byte) programEnd {
	running, kill := context.WithCancel(ctx)
	defer kill()
	stdout := &head{n: maxOutput, full: kill}
	stderr := &tail{n: maxError}
	cmd := exec.CommandContext(running, p.path, p.args...)
	cmd.Dir = p.dir
	cmd.Env = append(append(inheritedEnvironment(), p.env...), env...)
	cmd.Stdin = bytes.NewReader(input)
	if p.format != formatNone {
		cmd.Stdout = stdout
	}
	cmd.Stderr = stderr
	cmd.WaitDelay = pipesLinger
	processgroup.Own(cmd)
	defer processgroup.HoldParent()()
	if err := cmd.Start(); err != nil {
		return programEnd{notStarted: err}
	}
	err := cmd.Wait()
	end := programEnd{stdout: stdout.kept, stderr: stderr.text(), state: cmd.ProcessState, tooLarge: stdout.over}
	var exit *exec.ExitError
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) && !errors.As(err, &exit) {
		end.failed = err
	}
	return end
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
