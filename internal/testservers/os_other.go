//go:build !linux

package testservers

import (
	"os"
	"syscall"
)

func dieWithParent() *syscall.SysProcAttr { return nil }

func awaitPaused(*os.Process) error { return nil }
