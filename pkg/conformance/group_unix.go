//go:build unix

package conformance

import (
	"os/exec"
	"syscall"
)

// ownGroup has the command start as the leader of a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }
func killGroup(pid int)      { _ = syscall.Kill(-pid, syscall.SIGKILL) }
func freezeGroup(pid int)    { _ = syscall.Kill(-pid, syscall.SIGSTOP) }
func thawGroup(pid int)      { _ = syscall.Kill(-pid, syscall.SIGCONT) }
