// Command conformance-generic is the conformance executor of cmd/executor: it writes a
// functions file whose functions are this program, or endpoints of this process, and runs
// the executor with it. The program executor has to be in PATH.
//
//	callfan conformance --executor 'conformance-generic exec'
//	callfan conformance --executor 'conformance-generic http'
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "function" {
		runProgram(os.Args[2])
		return
	}
	if len(os.Args) != 2 || os.Args[1] != "exec" && os.Args[1] != "http" {
		fmt.Fprintln(os.Stderr, "usage: conformance-generic exec|http")
		os.Exit(2)
	}
	code, err := serve(os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "conformance-generic: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// serve runs the executor to its end and gives its exit status.
func serve(how string) (int, error) {
	// The group gets SIGTERM; the executor stops, and what serves its functions must outlive it.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	dir, err := os.MkdirTemp(filepath.Dir(os.Getenv("CONFORMANCE_LOG")), "functions-") // the suite removes it, even after a kill
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ex := &runningExecutor{}
	var play func(function string, verify bool) string
	if how == "exec" {
		if play, err = programs(); err != nil {
			return 0, err
		}
	} else {
		address, err := ex.listen()
		if err != nil {
			return 0, err
		}
		play = endpoints(address)
	}
	file := filepath.Join(dir, "functions.yaml")
	if err := os.WriteFile(file, []byte(functionsFile(play)), 0o600); err != nil {
		return 0, err
	}
	return ex.run(file)
}

// runningExecutor is the process of cmd/executor.
type runningExecutor struct{ cmd *exec.Cmd }

func (ex *runningExecutor) run(file string) (int, error) {
	ex.cmd = exec.Command("executor", file)
	ex.cmd.Env = append(os.Environ(),
		"CALLFAN_CONCURRENCY="+os.Getenv("EXECUTOR_CONCURRENCY"), "CALLFAN_STOP_TIMEOUT="+os.Getenv("EXECUTOR_STOP_TIMEOUT_MS")+"ms",
		"CALLFAN_NATS_INBOX_PREFIX="+os.Getenv("CONFORMANCE_INBOX_PREFIX"))
	ex.cmd.Stdout, ex.cmd.Stderr = os.Stdout, os.Stderr
	err := ex.cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}
