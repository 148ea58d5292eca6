// Command testcount runs go test, prints what go test prints, and ends with one line "N passed, N failed" that counts
// top-level tests.
//
//	testcount -race -timeout 10m ./...
//
// The arguments are those of go test. A skipped test counts as failed, because a test that does not run proves nothing;
// the exceptions stand in allowedSkips, with their reasons. A package that does not build, or that fails outside of its
// tests, counts as one failed test. The exit code is that of go test, and 1 when only a skip failed or no test ran.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

func main() {
	code, err := run(".", os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
	}
	os.Exit(code)
}

// run runs go test with args in dir. The error says why go test could not be run or read; the code is never 0 then.
func run(dir string, args []string, stdout, stderr io.Writer) (code int, err error) {
	started := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir, cmd.Stderr = dir, stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 1, fmt.Errorf("read go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start go test: %w", err)
	}
	report := newReport(stdout)
	lines := bufio.NewReader(events)
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(line) > 0 {
			report.add(line)
		}
		if readErr != nil {
			if !errors.Is(readErr, io.EOF) {
				err = fmt.Errorf("read go test: %w", readErr)
			}
			break
		}
	}
	if waitErr := cmd.Wait(); waitErr != nil {
		if exit, ok := errors.AsType[*exec.ExitError](waitErr); ok {
			code = max(1, exit.ExitCode()) // -1 when a signal ended it
		} else {
			err = errors.Join(err, waitErr)
		}
	}
	passed, failed := report.finish(code != 0, time.Since(started))
	if code == 0 && (err != nil || failed > 0 || passed == 0) {
		code = 1
	}
	return code, err
}
