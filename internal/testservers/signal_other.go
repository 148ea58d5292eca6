//go:build !unix

package testservers

import (
	"errors"
	"os"
)

var errNoPause = errors.New("this system cannot pause a process; remedy: run this test on Linux or macOS")

func terminate(p *os.Process) error { return p.Kill() }

func pause(*os.Process) error { return errNoPause }

func resume(*os.Process) error { return errNoPause }
