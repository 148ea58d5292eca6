//go:build unix && !linux

package processgroup

import (
	"os/exec"
	"syscall"
)

// Own gives the program a process group, so that its children end with it.
func Own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// HoldParent does nothing: here a program outlives an executor that is killed.
func HoldParent() (release func()) { return func() {} }
