package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

// Worker is the demo's executor, a process of its own. Its NATS address comes by the
// environment, as for every executor.
type Worker struct {
	NATSURL     string
	Prefix      string
	Concurrency int
	Logger      *slog.Logger
}

// stopTimeout is short: who stops the demo does not want to wait for its handlers.
const stopTimeout = 2 * time.Second

// WorkerReport is what the worker prints at its end, as one line of JSON.
type WorkerReport struct {
	// Executed counts runs of handlers, Calls the calls that they were for.
	Executed int `json:"executed"`
	Calls    int `json:"calls"`
}

// Run serves the demo's functions until in ends, and then writes the report to out.
func (w Worker) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	counted := &executions{calls: map[string]bool{}}
	ex, err := executor.New(executor.Config{
		Queue:       queue.Config{URL: w.NATSURL, Prefix: w.Prefix},
		Pool:        "demo",
		Concurrency: w.Concurrency,
		StopTimeout: stopTimeout,
		Middleware:  []executor.Middleware{counted.count},
		Logger:      w.Logger,
	})
	if err != nil {
		return err
	}
	if err := Register(ex); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		// The parent closes the pipe when it is done, and the system does when it dies.
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	if err := ex.Run(ctx); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(counted.report())
}

// workerProcess is the worker as the demo sees it.
type workerProcess struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output chan []byte
}

// startWorker runs command, this program's hidden worker command.
func startWorker(command, env []string) (*workerProcess, error) {
	if len(command) == 0 {
		return nil, errors.New("demo: no worker command")
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // this very program
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("demo: the executor process does not start: %w", err)
	}
	w := &workerProcess{cmd: cmd, stdin: stdin, output: make(chan []byte, 1)}
	go func() {
		line, _ := bufio.NewReader(stdout).ReadBytes('\n')
		w.output <- line
	}()
	return w, nil
}

// stop ends the worker and reads its report.
func (w *workerProcess) stop() (WorkerReport, error) {
	_ = w.stdin.Close()
	var report WorkerReport
	select {
	case line := <-w.output:
		if err := json.Unmarshal(line, &report); err != nil {
			_ = w.cmd.Wait()
			return report, fmt.Errorf("demo: the executor process gave no report: %w", err)
		}
	case <-time.After(30 * time.Second):
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		return report, errors.New("demo: the executor process did not stop")
	}
	return report, w.cmd.Wait()
}
