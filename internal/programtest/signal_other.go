//go:build !unix

package programtest

import "os"

func terminate(p *os.Process) error { return p.Kill() }
