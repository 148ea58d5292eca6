// Package conformance checks that an executor, in any language, does what the protocol
// asks of it (docs/protocol.md).
//
// The executor is a program that serves the functions of protocol/conformance.md. The
// suite starts NATS servers, plays the dispatcher, starts the program as a process,
// stops it, kills it, and looks at what goes over the wire and at what the functions
// logged. It needs a POSIX shell.
//
//	func TestConformance(t *testing.T) {
//		conformancetest.Run(t, conformance.Executor{Command: "./my-conformance-executor"})
//	}
//
// `callfan conformance` is the same for the command line.
package conformance
