//go:build unix

package testservers

import (
	"os"
	"syscall"

	"github.com/callfan/callfan/internal/processgroup"
)

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return processgroup.AwaitStopped(p.Pid)
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
