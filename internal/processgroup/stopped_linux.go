package processgroup

import (
	"errors"
	"os"
	"syscall"
)

// AwaitStopped returns when all threads of a child that was sent SIGSTOP have stopped,
// which the kernel tells its parent. Before that one of them may still do something.
func AwaitStopped(pid int) error {
	const byPid = 1 // P_PID of waitid(2)
	for {
		// WNOWAIT leaves the child's state for whoever waits for its end.
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(pid), 0, syscall.WSTOPPED|syscall.WNOWAIT, 0, 0)
		switch {
		case errno == 0:
			return nil
		case !errors.Is(errno, syscall.EINTR):
			return os.NewSyscallError("waitid", errno)
		}
	}
}
