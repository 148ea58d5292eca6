package programtest

import "syscall"

// dieWithParent makes the kernel kill a program whose test was itself killed, by a timeout for example.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
