//go:build !linux

package testservers

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
