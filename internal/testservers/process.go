package testservers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

const (
	readyTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
	pollInterval = 5 * time.Millisecond
	// logTail is how much of a server's log a failed test shows.
	logTail = 16 << 10
)

// process is one server process that can be ended and started again with the same command line.
type process struct {
	t       testing.TB
	name    string
	path    string
	args    []string
	logPath string
	// ready asks the server whether it serves; nil means yes.
	ready func() error

	// running and exited belong to the current run; running is nil after a stop.
	running *os.Process
	exited  chan struct{}
}

// launch starts the process for the first time and registers its end with the test.
func (p *process) launch(dir string) {
	p.t.Helper()
	p.logPath = filepath.Join(dir, "server.log")
	p.t.Cleanup(func() {
		p.stop()
		if p.t.Failed() {
			p.t.Logf("testservers: end of the log of %s:\n%s", p.name, p.log())
		}
	})
	p.start()
}

// start runs the process and returns when it is ready.
func (p *process) start() {
	p.t.Helper()
	if p.alive() {
		p.t.Fatalf("testservers: %s is already running", p.name)
	}
	if err := p.spawn(); err != nil {
		p.t.Fatalf("testservers: start %s: %v", p.name, err)
	}
	if err := p.awaitReady(); err != nil {
		p.t.Fatalf("testservers: %s did not become ready: %v\n%s", p.name, err, p.log())
	}
}

func (p *process) spawn() error {
	logFile, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the server log: %w", err)
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir = filepath.Dir(p.logPath)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = dieWithParent()

	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(exited)
		defer logFile.Close()
		// The kernel ends the child when the thread that started it ends, so the thread stays until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the exit code after a signal says nothing; early exits are noticed in awaitReady
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.running, p.exited = cmd.Process, exited
	return nil
}

func (p *process) awaitReady() error {
	deadline := time.After(readyTimeout)
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	err := errors.New("not asked yet")
	for {
		select {
		case <-p.exited:
			p.running = nil
			return errors.New("the process ended")
		case <-deadline:
			return fmt.Errorf("no answer within %s: %w", readyTimeout, err)
		case <-poll.C:
		}
		if err = p.ready(); err == nil {
			return nil
		}
	}
}

func (p *process) alive() bool {
	if p.running == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop asks the process to end, and kills it when it does not.
func (p *process) stop() {
	p.t.Helper()
	if p.running == nil {
		return
	}
	_ = resume(p.running) // a paused process does not see the request
	if err := terminate(p.running); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("testservers: stop %s: %v", p.name, err)
	}
	select {
	case <-p.exited:
		p.running = nil
	case <-time.After(stopTimeout):
		p.t.Errorf("testservers: %s did not stop within %s and was killed", p.name, stopTimeout)
		p.kill()
	}
}

// kill ends the process without giving it a chance to tidy up.
func (p *process) kill() {
	p.t.Helper()
	if p.running == nil {
		return
	}
	if err := p.running.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("testservers: kill %s: %v", p.name, err)
	}
	<-p.exited
	p.running = nil
}

func (p *process) signal(what string, send func(*os.Process) error) {
	p.t.Helper()
	if !p.alive() {
		p.t.Fatalf("testservers: cannot %s %s: it is not running", what, p.name)
	}
	if err := send(p.running); err != nil {
		p.t.Fatalf("testservers: %s %s: %v", what, p.name, err)
	}
}

// log returns the end of what the process has written so far, over all its runs.
func (p *process) log() string {
	content, err := os.ReadFile(p.logPath)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(content[max(0, len(content)-logTail):])
}
