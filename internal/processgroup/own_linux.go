package processgroup

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Own gives the program a process group, so that its children end with it. It
// ends when the executor is killed: a program that lived on could take effect after
// it was verified that it had not.
func Own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// HoldParent keeps the calling thread, which Linux takes for the parent of the
// programs that it starts, until release: the signal comes when that thread ends.
func HoldParent() (release func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
