//go:build !unix

package functionfile

import "os/exec"

// ownGroup does nothing here: only the program itself is killed at its timeout.
func ownGroup(*exec.Cmd) {}

// holdParent does nothing: here a program outlives an executor that is killed.
func holdParent() (release func()) { return func() {} }
