//go:build !linux

package processgroup

// AwaitStopped does nothing here: a child that was sent SIGSTOP stops a little later.
func AwaitStopped(int) error { return nil }
