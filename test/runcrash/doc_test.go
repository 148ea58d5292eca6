//go:build unix

// Package runcrash kills dispatchers with SIGKILL in the middle of runs of the Responses API, and checks that every run
// ends with the right answer, that no call is run twice, that the API gets no two outputs for a call, and that no run
// costs more responses than the kills explain.
//
// The dispatchers are processes, beside real servers of NATS and Redis; the executor and the simulator live in the test,
// so that they can keep book and kill at a certain point. `make crash-runs` is the long form.
package runcrash
