package programtest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// patience bounds every wait for a process.
	patience = 60 * time.Second
	poll     = 5 * time.Millisecond
	// logTail is how much of its output a failed test shows, in bytes.
	logTail = 8 << 10
)

// Command is what a process runs.
type Command struct {
	// Path is the program, from Build.
	Path string
	Args []string
	// Env is added to the environment of the test, from which the variables of callfan, OpenAI, NATS and Redis are
	// taken out.
	Env []string
	// Dir is the working directory. Defaults to that of the test.
	Dir string
	// Stdin defaults to an empty input.
	Stdin io.Reader
	// Quiet: a test that fails does not show what the process wrote.
	Quiet bool
}

// Process is a running command. It is killed at the end of the test at the latest, and by the system when the test
// process dies.
type Process struct {
	Stdout, Stderr *Output

	t      testing.TB
	name   string
	cmd    *exec.Cmd
	exited chan struct{}
}

// Output is what a process has written so far.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns all of it.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Start runs a command.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p := &Process{
		Stdout: &Output{}, Stderr: &Output{}, t: t, name: c.Path + " " + strings.Join(c.Args, " "),
		exited: make(chan struct{}),
	}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Env = c.Dir, c.Stdin, append(Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.Stdout, p.Stderr
	p.cmd.SysProcAttr = dieWithParent()
	p.cmd.WaitDelay = 5 * time.Second // a grandchild may hold the pipes
	started := make(chan error, 1)
	go func() {
		defer close(p.exited)
		// The kernel ends the child when the thread that started it ends, so the thread stays until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the exit code is in ProcessState
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("programtest: start %s: %v", p.name, err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() && !c.Quiet {
			t.Logf("%s\n--- stdout\n%s\n--- stderr\n%s", p.name, tail(p.Stdout), tail(p.Stderr))
		}
	})
	return p
}

// Environ is the environment of the test without the variables that would set the programs up.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		for _, prefix := range []string{"CALLFAN_", "OPENAI_", "NATS_", "REDIS_"} {
			if strings.HasPrefix(entry, prefix) {
				return true
			}
		}
		return false
	})
}

func tail(o *Output) string {
	text := o.String()
	return text[max(0, len(text)-logTail):]
}

// Run runs a command to its end and returns its exit code.
func Run(t testing.TB, c Command) (code int, p *Process) {
	t.Helper()
	p = Start(t, c)
	return p.Wait(), p
}

// Wait waits for the end of the process and returns its exit code, -1 when a signal ended it. It fails the test when
// the process goes on for too long.
func (p *Process) Wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("programtest: %s did not end within %s", p.name, patience)
		return -1
	}
}

// Await waits until an output contains a text and fails the test when it does not come.
func (p *Process) Await(o *Output, text string) {
	p.t.Helper()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !strings.Contains(o.String(), text) {
		select {
		case <-ticker.C:
		case <-p.exited:
			if !strings.Contains(o.String(), text) {
				p.t.Fatalf("programtest: %s ended before it wrote %q", p.name, text)
			}
		case <-deadline:
			p.t.Fatalf("programtest: %s did not write %q within %s", p.name, text, patience)
		}
	}
}

// Stop asks the process to end and returns its exit code.
func (p *Process) Stop() int {
	p.t.Helper()
	if err := terminate(p.cmd.Process); err != nil && p.Running() {
		p.t.Fatalf("programtest: stop %s: %v", p.name, err)
	}
	return p.Wait()
}

// Signal sends a signal, without waiting for what comes of it.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && p.Running() {
		p.t.Fatalf("programtest: send %s to %s: %v", s, p.name, err)
	}
}

// Kill ends the process without giving it a chance to tidy up, and returns when it is gone.
func (p *Process) Kill() {
	if p.Running() {
		_ = p.cmd.Process.Kill() // it may have ended just now
	}
	<-p.exited
}

// Running says whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
