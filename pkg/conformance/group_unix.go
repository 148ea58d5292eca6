//go:build unix

package conformance

import (
	"os/exec"
	"syscall"

	"github.com/callfan/callfan/internal/processgroup"
)

// ownGroup has the command start as the leader of a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }
func killGroup(pid int)      { _ = syscall.Kill(-pid, syscall.SIGKILL) }
func thawGroup(pid int)      { _ = syscall.Kill(-pid, syscall.SIGCONT) }

// freezeGroup returns when the leader stands still. Its children do so a little later.
func freezeGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGSTOP)
	_ = processgroup.AwaitStopped(pid) // fails when it has ended
}
