package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// languageProcess is the executor of a language.
type languageProcess struct {
	language
	cmd    *exec.Cmd
	log    tail
	exited chan struct{}
}

// startLanguage runs a language's example.
func startLanguage(root string, l language, env []string) (*languageProcess, error) {
	command, err := l.command(root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.title, err)
	}
	if strings.Contains(command[0], "/") {
		command[0] = filepath.Join(root, command[0])
	}
	p := &languageProcess{language: l, cmd: exec.Command(command[0], command[1:]...), exited: make(chan struct{})} //nolint:gosec // the checkout's own examples
	p.cmd.Dir = root
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("the executor in %s does not start: %w; remedy: make language-%s", l.title, err, l.name)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the state tells
	}()
	return p, nil
}

// ended is an error once the process is gone.
func (p *languageProcess) ended() error {
	select {
	case <-p.exited:
		return fmt.Errorf("the executor in %s ended with %s:\n%s", p.title, p.cmd.ProcessState, p.log.text())
	default:
		return nil
	}
}

// terminate asks the process to stop.
func (p *languageProcess) terminate() {
	if p.cmd.Process.Signal(syscall.SIGTERM) != nil {
		_ = p.cmd.Process.Kill() // there is no such signal, or no such process any more
	}
}

// languageStop bounds the end of an executor without work.
const languageStop = 15 * time.Second

// stop ends the process.
func (p *languageProcess) stop() error {
	p.terminate()
	select {
	case <-p.exited:
		return nil
	case <-time.After(languageStop):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("the executor in %s did not stop within %v:\n%s", p.title, languageStop, p.log.text())
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

const tailSize = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, data...)
	t.end = t.end[max(0, len(t.end)-tailSize):]
	return len(data), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}
