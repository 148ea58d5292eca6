//go:build !unix

package functionfile

import "os/exec"

// ownGroup does nothing here: only the program itself is killed at its timeout.
func ownGroup(*exec.Cmd) {}
