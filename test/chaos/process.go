//go:build unix

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one program that can be ended and started again. One goroutine at a time works on it. When it ends by itself,
// it is started again, as a supervisor would.
type process struct {
	name string
	path string
	args []string
	env  []string
	dir  string
	// host is the network namespace that it runs in, if it has one.
	host string

	starting sync.Mutex

	mu     sync.Mutex
	pid    int
	exited chan struct{}
	// down: it was told to end.
	down bool
	// gaveUp counts how often it ended by itself.
	gaveUp int
}

// restartAfter is how long a process that ended by itself stays down.
const restartAfter = time.Second

// start runs the program unless it is running. Its output is appended to a file.
func (p *process) start() error {
	p.wanted(true)
	return p.run()
}

// wanted notes whether the process is to be up.
func (p *process) wanted(up bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = !up
}

// ended starts a process again that ended by itself.
func (p *process) ended() {
	p.mu.Lock()
	if !p.down {
		p.gaveUp++
	}
	p.mu.Unlock()
	time.AfterFunc(restartAfter, func() {
		p.mu.Lock()
		down := p.down
		p.mu.Unlock()
		if !down {
			_ = p.run() // the next start of the nemesis tells
		}
	})
}

func (p *process) run() error {
	p.starting.Lock()
	defer p.starting.Unlock()
	if p.alive() {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(p.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	command := append([]string{p.path}, p.args...)
	if p.host != "" {
		command = append([]string{"ip", "netns", "exec", p.host}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // the harness's own programs
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, append(environ(), p.env...), log, log
	cmd.SysProcAttr = dieWithParent()
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(exited)
		defer log.Close()
		// The kernel ends the child when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			p.ended()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.mu.Lock()
	p.pid, p.exited = cmd.Process.Pid, exited
	p.mu.Unlock()
	return nil
}

func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) {
	if p.alive() {
		_ = syscall.Kill(p.pid, sig) // it may have ended just now
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.wanted(false)
	p.signal(syscall.SIGKILL)
	p.await(10 * time.Second)
}

// terminate asks the process to end, and kills it when it does not in time.
func (p *process) terminate(patience time.Duration) (orderly bool) {
	p.wanted(false)
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	if p.await(patience) {
		return true
	}
	p.kill()
	return false
}

func (p *process) await(patience time.Duration) bool {
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	if exited == nil {
		return true
	}
	select {
	case <-exited:
		return true
	case <-time.After(patience):
		return false
	}
}

// environ is the environment without what would set the programs up.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc([]string{"CALLFAN_", "OPENAI_", "NATS_", "REDIS_", "CHAOS_"}, func(prefix string) bool {
			return strings.HasPrefix(entry, prefix)
		})
	})
}
