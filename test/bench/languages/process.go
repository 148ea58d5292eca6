package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

// process is a program that is measured. Its output goes to a file.
type process struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{}
}

func start(root, dir, name string, command, env []string) (*process, error) {
	output, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	if strings.Contains(command[0], "/") && !filepath.IsAbs(command[0]) {
		command[0] = filepath.Join(root, command[0])
	}
	p := &process{name: name, cmd: exec.Command(command[0], command[1:]...), exited: make(chan struct{})} //nolint:gosec // the repository's own programs
	p.cmd.Dir = root
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = output, output
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), output.Close())
	}
	go func() {
		defer close(p.exited)
		defer output.Close()
		_ = p.cmd.Wait() // the state tells
	}()
	return p, nil
}

// stop ends the process in order.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// ended is an error once the process is gone.
func (p *process) ended() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s ended: %s", p.name, p.cmd.ProcessState)
	default:
		return nil
	}
}

// startNATS starts a nats-server with JetStream on a free port, and gives its address.
func startNATS(ctx context.Context, root, dir string) (*process, string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return nil, "", err
	}
	config := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: 127.0.0.1:%d\nmax_payload: 8388608\njetstream { store_dir: %q }\n", port, filepath.Join(dir, "store"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, "", err
	}
	p, err := start(root, dir, "nats-server", []string{"bin/nats-server", "--config", config}, nil)
	if err != nil {
		return nil, "", err
	}
	url := "nats://127.0.0.1:" + strconv.Itoa(port)
	return p, url, poll(ctx, 10*time.Second, "nats-server", func() error {
		if err := p.ended(); err != nil {
			return err
		}
		conn, err := nats.Connect(url)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// poll waits until ready gives no error.
func poll(ctx context.Context, within time.Duration, what string, ready func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v: %w", what, within, err)
		case <-tick.C:
		}
	}
}

// tickRate is the unit of /proc/PID/stat, in ticks a second, on every Linux of today.
const tickRate = 100

// cpuTime is the processor time of a process and of its children, those that it has waited for and those that live.
func cpuTime(pid int) (time.Duration, error) {
	all, _, err := processTime(pid)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if its, parent, err := processTime(child); err == nil && parent == pid {
			all += its
		}
	}
	return all, nil
}

// processTime is the processor time of one process and of the children that it has waited for, and its parent.
func processTime(pid int) (used time.Duration, parent int, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("the benchmark reads times of processes as Linux tells them: %w", err)
	}
	// The name, in parentheses, may contain blanks. utime, stime, cutime and cstime are the fields 14 to 17.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 15 {
		return 0, 0, io.ErrUnexpectedEOF
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, err
	}
	var ticks int64
	for _, field := range fields[11:15] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / tickRate, parent, nil
}

// resident is the largest memory of a process so far, in bytes.
func resident(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // 0 when it is gone
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
