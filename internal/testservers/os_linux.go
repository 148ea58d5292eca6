package testservers

import "syscall"

// dieWithParent makes the kernel kill a server whose test binary was itself killed, by a timeout for example.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
