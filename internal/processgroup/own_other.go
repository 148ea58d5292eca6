//go:build !unix

package processgroup

import "os/exec"

// Own does nothing here: only the program itself is killed at its timeout.
func Own(*exec.Cmd) {}

// HoldParent does nothing: here a program outlives an executor that is killed.
func HoldParent() (release func()) { return func() {} }
