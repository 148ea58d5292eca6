//go:build unix

package programtest

import (
	"syscall"

	"github.com/callfan/callfan/internal/processgroup"
)

// Freeze has the process stand still until it gets SIGCONT.
func (p *Process) Freeze() {
	p.t.Helper()
	p.Signal(syscall.SIGSTOP)
	if err := processgroup.AwaitStopped(p.cmd.Process.Pid); err != nil && p.Running() {
		p.t.Fatalf("programtest: freeze %s: %v", p.name, err)
	}
}
