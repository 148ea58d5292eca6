//go:build unix

package testservers

import (
	"os"
	"syscall"
)

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitPaused(p)
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
