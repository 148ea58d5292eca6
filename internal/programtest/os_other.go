//go:build !linux

package programtest

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
