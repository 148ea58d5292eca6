// Package testservers starts real server processes for tests: Redis and nats-server, each on a free loopback port, with
// its data in the test's temporary directory. A server lives as long as the test that started it: it is stopped by
// process handle in the test's cleanup, and on Linux the kernel kills it if the test binary dies first. When the test
// failed, the end of the server's log is written to the test log.
//
// Servers can be cut and brought back in the middle of a test: Stop and Kill end the process, Start brings it back on the
// same port with the same data directory, and Pause and Resume freeze it without closing a connection.
//
// A server that is missing is a failure that names the remedy, never a skipped test.
//
// The package is for tests only; no production package imports it. Its methods report trouble by t.Fatal, so they are
// called from the goroutine of the test.
package testservers
