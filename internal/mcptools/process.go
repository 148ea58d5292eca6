package mcptools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callfan/callfan/internal/processgroup"
)

const (
	// exitGrace is how long a server may take to exit after its input ended, and again
	// after SIGTERM.
	exitGrace = 2 * time.Second
	// pipesLinger is how long the output of a server is read after it exited, in case
	// it left children that hold its pipes.
	pipesLinger = 500 * time.Millisecond
	// maxComplaint is the most of what a server writes to its standard error that is kept.
	maxComplaint = 2 << 10
)

// process is a running server.
type process struct {
	cmd    *exec.Cmd
	kill   context.CancelFunc
	stdin  *os.File
	stdout *os.File
	stderr complaints
	exited chan struct{} // closed once the process is gone
	end    error         // why, once exited is closed
}

// start runs the command. Its goroutine keeps the thread that Linux takes for the
// parent until the server is gone.
func start(c *Command) (*process, error) {
	running, kill := context.WithCancel(context.Background())
	p := &process{cmd: exec.CommandContext(running, c.Path, c.Args...), kill: kill, exited: make(chan struct{})}
	childIn, stdin, err := os.Pipe()
	if err != nil {
		kill()
		return nil, err
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		kill()
		return nil, errors.Join(err, childIn.Close(), stdin.Close())
	}
	p.stdin, p.stdout = stdin, stdout
	p.cmd.Dir, p.cmd.Env = c.Dir, c.Env
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, &p.stderr
	p.cmd.WaitDelay = pipesLinger
	processgroup.Own(p.cmd)
	started := make(chan error, 1)
	go func() {
		defer close(p.exited)
		defer processgroup.HoldParent()()
		err := p.cmd.Start()
		_, _ = childIn.Close(), childOut.Close() // the child has its own
		started <- err
		if err == nil {
			p.await()
		}
	}()
	if err := <-started; err != nil {
		kill()
		_, _ = stdin.Close(), stdout.Close()
		return nil, err
	}
	return p, nil
}

// await waits for the end of the server and of what it left behind.
func (p *process) await() {
	err := p.cmd.Wait()
	p.end = errors.New("the server exited with status 0")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		p.end = fmt.Errorf("the server ended: %w", exit)
	} else if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		p.end = err
	}
	_ = p.cmd.Cancel() // its children, if it has any left
	time.AfterFunc(pipesLinger, func() { _ = p.stdout.Close() })
}

// transport makes the process a transport of the SDK.
func (p *process) transport(stray func()) mcp.Transport {
	return &mcp.IOTransport{Reader: newLines(p.stdout, stray), Writer: p.stdin, MaxLineLength: 2 * maxMessage}
}

// stop ends the server: by the end of its input, by SIGTERM, by SIGKILL.
func (p *process) stop() {
	defer p.kill()
	_ = p.stdin.Close()
	if p.exitsWithin(exitGrace) {
		return
	}
	if p.cmd.Process.Signal(syscall.SIGTERM) == nil && p.exitsWithin(exitGrace) {
		return
	}
	p.kill()
	<-p.exited
}

func (p *process) exitsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// complaint is why the server ended and the end of what it wrote to its standard
// error, if it exits within d. It is asked before any call was made: later the text
// might quote arguments.
func (p *process) complaint(d time.Duration) error {
	if !p.exitsWithin(d) {
		return nil
	}
	if text := p.stderr.text(); text != "" {
		return fmt.Errorf("%w: %s", p.end, text)
	}
	return p.end
}

// complaints keeps the end of what is written.
type complaints struct {
	mu   sync.Mutex
	kept []byte
}

func (c *complaints) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, text...)
	if over := len(c.kept) - maxComplaint; over > 0 {
		c.kept = append(c.kept[:0], c.kept[over:]...)
	}
	return len(text), nil
}

func (c *complaints) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(c.kept), "\uFFFD"))
}
