package testservers

import (
	"errors"
	"os"
	"syscall"
)

// dieWithParent makes the kernel kill a server whose test binary was itself killed, by a timeout for example.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// awaitPaused returns when all threads of a child have stopped, which the kernel tells its parent. Before that a thread
// may still answer a request.
func awaitPaused(p *os.Process) error {
	const byPid = 1 // P_PID of waitid(2)
	for {
		// WNOWAIT leaves the child's state for whoever waits for its end.
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(p.Pid), 0, syscall.WSTOPPED|syscall.WNOWAIT, 0, 0)
		switch {
		case errno == 0:
			return nil
		case !errors.Is(errno, syscall.EINTR):
			return os.NewSyscallError("waitid", errno)
		}
	}
}
