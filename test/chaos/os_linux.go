package chaos

import "syscall"

// dieWithParent makes the kernel kill a process whose harness was itself killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
