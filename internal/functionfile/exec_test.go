package functionfile

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/executor/executortest"
)

// playing loads a file whose function f is this test binary in a role. Without
// GORACE, a program built with -race waits a second before it exits.
func playing(t *testing.T, extra, role string, args ...string) *executor.Executor {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if !strings.Contains(extra, "env: {") {
		extra += ", env: {}"
	}
	extra = strings.Replace(extra, "env: {", `env: {GORACE: "atexit_sleep_ms=0", `, 1)
	command, err := json.Marshal(append([]string{self, "play", role}, args...))
	require.NoError(t, err)
	f, err := Load(write(t, one("timeout: 10s", "exec: {command: "+string(command)+extra+"}")))
	require.NoError(t, err)
	ex := executortest.New(t)
	require.NoError(t, f.Add(ex))
	return ex
}

func TestProgramGetsTheBytesAndItsOutputIsTheText(t *testing.T) {
	t.Parallel()
	ex := playing(t, "", "cat")
	for _, arguments := range []string{`{"n":9007199254740993,"m":1e400,"a":1,"a":2}`, `{"t":"<a&b>\u0000\ud800"}` + "\n", ``, `{"t":"` + strings.Repeat("x", 1<<20) + `"}`} {
		require.Equal(t, arguments, executortest.Text(t, executortest.Call(t, ex, "f", arguments)))
	}
	for _, output := range []string{"", "0", "false", "[]", " two\nlines\n"} {
		require.Equal(t, output, executortest.Text(t, executortest.Call(t, playing(t, "", "print", output), "f", "{}")))
	}
	require.Equal(t, "a\uFFFDb", executortest.Text(t, executortest.Call(t, playing(t, "", "print", "a\xffb"), "f", "{}")))
}

func TestProgramThatDoesNotReadItsInput(t *testing.T) {
	t.Parallel()
	ex := playing(t, "", "print", "done")
	require.Equal(t, "done", executortest.Text(t, executortest.Call(t, ex, "f", `{"t":"`+strings.Repeat("x", 1<<20)+`"}`)))
}

func TestProgramContent(t *testing.T) {
	t.Parallel()
	good := `[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x/y.png"}]`
	o := executortest.Call(t, playing(t, ", output: content", "print", good), "f", "{}")
	require.Equal(t, call.Success, o.Kind, o.Error)
	require.Equal(t, good, string(o.Output))
	o = executortest.Call(t, playing(t, ", output: content", "print", "plain"), "f", "{}")
	require.Equal(t, call.ReasonInvalidOutput, o.Cause)
	require.Equal(t, "the function gave an invalid content array: it is not a JSON array", o.Error)
}

func TestExitStatusDecides(t *testing.T) {
	t.Parallel()
	exit := func(code, text string) call.Outcome {
		return executortest.Call(t, playing(t, "", "exit", code, text), "f", "{}")
	}
	o := exit("1", "customer 456\nnot found\n")
	require.Equal(t, call.Failure, o.Kind)
	require.Equal(t, "customer 456\nnot found", o.Error)
	require.Empty(t, o.Cause)
	require.Equal(t, "exited with status 3", exit("3", " \n").Error)
	o = exit("75", "the database is away")
	require.Equal(t, call.Retry, o.Kind)
	require.Equal(t, "the database is away", o.Reason)
	require.Equal(t, "not used", executortest.Text(t, exit("0", "a warning")))
	o = exit("65", "count is missing\n")
	require.Equal(t, call.ReasonInvalidArguments, o.Cause)
	require.Equal(t, "invalid arguments: count is missing", o.Error)
	require.Equal(t, "invalid arguments: exited with status 65", exit("65", "").Error)

	o = executortest.Call(t, playing(t, "", "long-error"), "f", "{}")
	require.LessOrEqual(t, len(o.Error), maxError+len("…"))
	require.True(t, strings.HasPrefix(o.Error, "…ä"))
	require.True(t, strings.HasSuffix(o.Error, "ä"+"the end"))
}

func TestProgramSaysWhenItIsToBeRunAgain(t *testing.T) {
	t.Parallel()
	for stderr, want := range map[string]call.Outcome{
		"away\nRetry-After: 30\n":                          {Reason: "away", After: 30 * time.Second},
		"a\nb\nretry-after:7\r\n":                          {Reason: "a\nb", After: 7 * time.Second},
		"Retry-After: 2":                                   {Reason: "the function failed for now", After: 2 * time.Second},
		"away\nRetry-After: 86400":                         {Reason: "away", After: 10 * time.Minute},
		"away\nRetry-After: Mon, 02 Jan 2006 15:04:05 GMT": {Reason: "away"},
		"away\nRetry-After: soon":                          {Reason: "away\nRetry-After: soon"},
		"Retry-After: 3\naway":                             {Reason: "Retry-After: 3\naway"},
		"they said Retry-After: 3":                         {Reason: "they said Retry-After: 3"},
	} {
		o := executortest.Call(t, playing(t, "", "exit", "75", stderr), "f", "{}")
		require.Equal(t, call.Retry, o.Kind, stderr)
		require.Equal(t, want.Reason, o.Reason, stderr)
		require.Equal(t, want.After, o.After, stderr)
	}
	require.Equal(t, "no\nRetry-After: 3", executortest.Call(t, playing(t, "", "exit", "1", "no\nRetry-After: 3"), "f", "{}").Error)
}

func TestOutputNoneIsNoValue(t *testing.T) {
	t.Parallel()
	o := executortest.Call(t, playing(t, ", output: none", "cat"), "f", `{"t":"`+strings.Repeat("x", maxOutput)+`"}`)
	require.Equal(t, call.Success, o.Kind, o.Error)
	require.Equal(t, "null", string(o.Output))
	require.Equal(t, "wrong", executortest.Call(t, playing(t, ", output: none", "exit", "1", "wrong"), "f", "{}").Error)
}

func TestProgramThatDiesIsACrash(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // no signals there: the exit status is 1
	}
	o := executortest.Call(t, playing(t, "", "die"), "f", "{}")
	require.Equal(t, call.ReasonPanic, o.Cause)
	require.Equal(t, "function crashed (signal: killed)", o.Error)
}

func TestTooMuchOutputIsAFailure(t *testing.T) {
	t.Parallel()
	o := executortest.Call(t, playing(t, "", "flood"), "f", "{}")
	require.Equal(t, call.ReasonTooLarge, o.Cause)
	require.Equal(t, "result too large (more than 8388608 bytes)", o.Error)
}

func TestTimeoutKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	began := time.Now()
	o := executortest.Call(t, playing(t, "", "hang", pidFile), "f", "{}", executortest.WithTimeout(2*time.Second))
	require.Equal(t, "timed out after 2s", o.Error)
	require.Equal(t, call.ReasonTimeout, o.Cause)
	require.Less(t, time.Since(began), 8*time.Second)
	requireGone(t, pidFile)
}

// requireGone waits for the end of the process that wrote its id into the file.
func requireGone(t *testing.T, pidFile string) {
	t.Helper()
	raw, err := os.ReadFile(pidFile)
	require.NoError(t, err, "the child was not started in time")
	pid, err := strconv.Atoi(string(raw))
	require.NoError(t, err)
	child, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		if stat, err := os.ReadFile("/proc/" + string(raw) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return true // dead, and nobody has waited for it yet
		}
		return child.Signal(syscall.Signal(0)) != nil
	}, 20*time.Second, 10*time.Millisecond, "the child of the program lives on")
}

func TestKilledExecutorTakesItsProgramsWithIt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // documented: elsewhere a program outlives its executor
	}
	self, err := os.Executable()
	require.NoError(t, err)
	pidFile := filepath.Join(t.TempDir(), "pid")
	parent := exec.Command(self, "play", "executes", pidFile)
	require.NoError(t, parent.Start())
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(pidFile)
		return err == nil && len(raw) > 0
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	requireGone(t, pidFile)
}

func TestProgramEnvironment(t *testing.T) {
	t.Setenv("NATS_PASSWORD", "hidden")
	t.Setenv("FUNCTIONFILE_TOKEN", "s3cret")
	ex := playing(t, `, env: {A: b, TOKEN: "${FUNCTIONFILE_TOKEN}"}`, "environment")
	k := call.Key{Session: "sess_1", Turn: "turn_1", Call: "call\x00_1"}
	env := executortest.Text(t, executortest.Call(t, ex, "f", "{}", executortest.WithKey(k), executortest.WithAttempt(2), executortest.WithOnUncertain(call.UncertainRerun)))
	lines := strings.Split(env, "\n")
	for _, want := range []string{
		"A=b", "TOKEN=s3cret", "FN_SESSION_ID=sess_1", "FN_TURN_ID=turn_1", "FN_CALL_ID=call\uFFFD_1", "FN_FUNCTION=f",
		"FN_ATTEMPT=2", "FN_UNCERTAIN=1", "IDEMPOTENCY_KEY=" + k.IdempotencyKey(), "PATH=" + os.Getenv("PATH"),
	} {
		require.Contains(t, lines, want)
	}
	require.Regexp(t, `(?m)^FN_DEADLINE=20\d\d-.*Z$`, env)
	require.NotContains(t, env, "hidden")
	require.NotContains(t, env, "FUNCTIONFILE_TOKEN")
}

func TestProgramDirectory(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.Equal(t, dir, executortest.Text(t, executortest.Call(t, playing(t, ", dir: "+dir, "dir"), "f", "{}")))
}

func TestProgramThatVanishedIsATechnicalFailure(t *testing.T) {
	t.Parallel()
	path := write(t, one("exec: {command: [./ok.sh]}"))
	f, err := Load(path)
	require.NoError(t, err)
	ex := executortest.New(t)
	require.NoError(t, f.Add(ex))
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(path), "ok.sh")))
	o := executortest.Call(t, ex, "f", "{}")
	require.Equal(t, call.Retry, o.Kind)
	require.Contains(t, o.Reason, "could not be started")
}
