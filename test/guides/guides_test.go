package guides

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/testservers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// reader follows one guide.
type reader struct {
	t *testing.T
	// dir is where files are saved, and work where commands are run.
	dir, work string
	env       []string
	// replace has pairs of what the guide says, and what it is here.
	replace []string
	// awaited says by a part of a command how to see that it is ready.
	awaited map[string]func(*programtest.Process)
	outputs []string
}

func newReader(t *testing.T) *reader {
	dir := t.TempDir()
	r := &reader{t: t, dir: dir, work: dir, env: []string{
		"CALLFAN_DEV_DIR=" + t.TempDir(), "CALLFAN_DEV_NATS_LISTEN=127.0.0.1:0", "CALLFAN_DEV_SIMULATE_LISTEN=127.0.0.1:0", "CALLFAN_LISTEN=127.0.0.1:0",
	}}
	for _, program := range []string{"callfan", "executor"} {
		r.replace = append(r.replace, "go run ./cmd/"+program, programtest.Build(t, "cmd/"+program))
	}
	serves := func(p *programtest.Process) { p.Await(p.Stderr, "executor serves") }
	r.awaited = map[string]func(*programtest.Process){
		"callfan dev": r.developed, "cmd/executor": serves, "go run ./customers": serves, "executor.sh": serves,
	}
	return r
}

// developed takes the addresses of callfan dev.
func (r *reader) developed(dev *programtest.Process) {
	dev.Await(dev.Stdout, "OPENAI_API_KEY=any\n")
	printed := func(pattern string) string {
		match := regexp.MustCompile(pattern).FindStringSubmatch(dev.Stdout.String())
		require.NotNil(r.t, match, pattern)
		return match[1]
	}
	r.env = append(r.env, "NATS_URL="+printed(`NATS_URL=(\S+)`), "CALLFAN_DISPATCHER="+printed(`health, admin +(\S+)`))
	r.replace = append(r.replace, "http://127.0.0.1:8421/v1", printed(`OPENAI_BASE_URL=(\S+)`))
}

// follow does every step, and ends what was left running.
func (r *reader) follow(name string) []step {
	steps, err := read(filepath.Join(programtest.Root(), "docs/executors", name))
	require.NoError(r.t, err)
	var running []*programtest.Process
	for _, s := range steps {
		switch {
		case s.file != "":
			path := filepath.Join(r.dir, s.file)
			require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(r.t, os.WriteFile(path, []byte(strings.NewReplacer(r.replace...).Replace(s.text)), 0o600))
		case s.stays:
			p := r.start(s.text)
			ready := 0
			for part, await := range r.awaited {
				if strings.Contains(s.text, part) {
					await(p)
					ready++
				}
			}
			require.Equal(r.t, 1, ready, "how is it seen that this is ready?\n%s", s.text)
			running = append(running, p)
		default:
			p := r.start(s.text)
			require.Equal(r.t, 0, p.Wait(), s.text)
			r.outputs = append(r.outputs, p.Stdout.String())
		}
	}
	all := strings.Join(r.outputs, "")
	require.Contains(r.t, all, "Example Customer")
	require.Contains(r.t, all, "Customer 456 was not found.")
	for _, p := range slices.Backward(running) {
		p.Stop()
	}
	return steps
}

func (r *reader) start(commands string) *programtest.Process {
	commands = strings.TrimSpace(strings.NewReplacer(r.replace...).Replace(commands))
	if last := strings.LastIndex("\n"+commands, "\n"); !strings.Contains(commands[last:], "|") {
		commands = commands[:last] + "exec " + commands[last:] // signals go to the program
	}
	return programtest.Start(r.t, programtest.Command{Path: "/bin/sh", Args: []string{"-euc", commands}, Env: r.env, Dir: r.work})
}

// The guide works in the checkout. The overlay has its files there for the go command alone.
func TestGo(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	root, err := filepath.Abs(programtest.Root())
	require.NoError(t, err)
	overlay := map[string]map[string]string{"Replace": {}}
	for _, name := range []string{"customers/main.go", "customers/main_test.go"} {
		path := filepath.Join(r.dir, name)
		overlay["Replace"][filepath.Join(root, name)] = path
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755)) // an overlay's files have to be there
		require.NoError(t, os.WriteFile(path, []byte("package main\n"), 0o600))
	}
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	program := filepath.Join(t.TempDir(), "customers")
	// go run does not hand signals on, and go test wants the directory to be there.
	r.replace = append(r.replace, "go run ./customers", "go build -o "+program+" ./customers\n"+program,
		"go test ./customers", "go test -vet=off -c -o "+program+".test ./customers\n"+program+".test")
	r.work, r.env = root, append(r.env, "GOFLAGS=-overlay="+path)
	steps := r.follow("go.md")
	example, err := os.ReadFile(filepath.Join(root, "examples/first/main.go"))
	require.NoError(t, err)
	require.Equal(t, string(example), steps[1].text, "the program is that of examples/first")
}

func TestExec(t *testing.T) {
	t.Parallel()
	newReader(t).follow("exec.md")
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	r.replace = append(r.replace, "9000", port)
	r.awaited["python3 customers.py"] = func(*programtest.Process) {
		require.Eventually(t, func() bool {
			c, err := net.Dial("tcp", address)
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		}, 30*time.Second, 20*time.Millisecond)
	}
	r.follow("http.md")
}

func TestShell(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	root, err := filepath.Abs(programtest.Root())
	require.NoError(t, err)
	r.replace = append(r.replace,
		// The same build, once per machine.
		"go build -modfile=tools/nats.mod -o bin/ github.com/nats-io/natscli/nats", "mkdir bin && cp "+filepath.Join(testservers.NATSCLI(t), "nats")+" bin/",
		"examples/shell/executor.sh", filepath.Join(root, "examples/shell/executor.sh"))
	r.follow("shell.md")
}
