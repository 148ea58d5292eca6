package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// startWithin is how long a process may take until it is registered; a cold virtual
	// machine on a busy computer is slow.
	startWithin = 45 * time.Second
	// outputTail is how much of the executor's output a failed check shows.
	outputTail = 4 << 10
)

// process is a running conformance executor.
type process struct {
	cmd    *exec.Cmd
	output string // path
	began  time.Time
	exited chan struct{}
}

// launch runs the executor without waiting for anything.
func (t *trial) launch(env ...string) *process {
	t.mu.Lock()
	number := len(t.processes) + 1
	t.mu.Unlock()
	path := filepath.Join(t.dir, fmt.Sprintf("output-%d", number))
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	t.must(err, "the executor's output")
	// The signal to stop goes to the whole group. The shell outlives it, to give the
	// status of the command; the trap is not inherited.
	cmd := exec.Command("sh", "-c", "trap : TERM\n"+t.play.executor.Command)
	cmd.Dir = t.play.executor.Dir
	cmd.Env = append(append(append(environ(), t.play.executor.Env...),
		"NATS_URL="+t.executorURL(), "CONFORMANCE_POOL="+pool, "CONFORMANCE_LOG="+t.journalPath,
		"EXECUTOR_CONCURRENCY="+strconv.Itoa(t.config.concurrency),
		"EXECUTOR_STOP_TIMEOUT_MS="+strconv.FormatInt(t.config.stopTimeout.Milliseconds(), 10)), env...)
	cmd.Stdout, cmd.Stderr = out, out
	ownGroup(cmd)
	p := &process{cmd: cmd, output: path, began: time.Now(), exited: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		_ = out.Close()
		t.failf("start the executor: %w", err)
	}
	go func() {
		defer close(p.exited)
		defer out.Close()
		_ = cmd.Wait() // the state tells
	}()
	t.mu.Lock()
	t.processes = append(t.processes, p)
	t.mu.Unlock()
	return p
}

// environ is the environment of this process without what would set an executor up in
// another way.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		for _, prefix := range []string{"NATS_", "CALLFAN_", "CONFORMANCE_", "EXECUTOR_"} {
			if strings.HasPrefix(entry, prefix) {
				return true
			}
		}
		return false
	})
}

// start runs the executor and waits until it has registered every function.
func (t *trial) start(env ...string) *process {
	p := t.launch(env...)
	t.registered(p)
	return p
}

func (t *trial) registered(p *process) {
	missing := ""
	if !t.until(startWithin, func() bool { missing = t.unregistered(p.began); return missing == "" || p.gone() }) {
		t.failf("function %q was not registered within %s of the start", missing, startWithin)
	}
	if missing != "" {
		t.failf("the executor ended (%s) before it had registered function %q", p.status(), missing)
	}
	t.eventually(startWithin, func() bool { return t.pulls(p.began) || p.gone() }, "the executor has registered its functions and does not pull calls")
	pause(t.ctx, 100*time.Millisecond) // in which it may subscribe to cancel notices
}

func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) status() string {
	if !p.gone() {
		return "still running"
	}
	return p.cmd.ProcessState.String()
}

// terminate asks the process to stop in order.
func (p *process) terminate() { terminateGroup(p.cmd.Process.Pid) }

// kill ends the process and everything that it started.
func (p *process) kill() {
	killGroup(p.cmd.Process.Pid)
	<-p.exited
}

// freeze has the process stand still until thaw, as on a suspended machine.
func (p *process) freeze() { freezeGroup(p.cmd.Process.Pid) }
func (p *process) thaw()   { thawGroup(p.cmd.Process.Pid) }

// exits waits for the end of the process and checks its status.
func (t *trial) exits(p *process, within time.Duration, code int) {
	t.eventually(within, p.gone, "the executor did not end")
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.failf("the executor ended with %s; want status %d", p.status(), code)
	}
}

// stop ends the process in order.
func (t *trial) stop(p *process) {
	p.terminate()
	t.exits(p, t.config.stopTimeout+10*time.Second, 0)
}

func (p *process) text() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// output is the end of what the processes wrote.
func (r *rig) output() string {
	r.mu.Lock()
	processes := r.processes
	r.mu.Unlock()
	var all strings.Builder
	for i, p := range processes {
		text := p.text()
		fmt.Fprintf(&all, "--- process %d (%s)\n%s\n", i+1, p.status(), text[max(0, len(text)-outputTail):])
	}
	return all.String()
}
