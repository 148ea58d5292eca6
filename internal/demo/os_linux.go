package demo

import "syscall"

// dieWithParent has the kernel end an executor when the demo was killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
