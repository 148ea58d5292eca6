//go:build !unix

package conformance

import (
	"os"
	"os/exec"
)

// Without process groups and signals only the process itself can be ended, not in order.
func ownGroup(*exec.Cmd) {}

func terminateGroup(pid int) { killGroup(pid) }

func freezeGroup(int) {}
func thawGroup(int)   {}

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
