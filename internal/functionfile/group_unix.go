//go:build unix && !linux

package functionfile

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the program a process group, so that its children end with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// holdParent does nothing: here a program outlives an executor that is killed.
func holdParent() (release func()) { return func() {} }
