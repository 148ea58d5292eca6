//go:build !linux

package demo

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
