//go:build unix

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
