package functionfile

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/executor/executortest"
)

// verifiedBy loads a file whose function f prints "ran" and is verified by this.
func verifiedBy(t *testing.T, verify string) *executor.Executor {
	t.Helper()
	f, err := Load(write(t, one("timeout: 10s", "exec: {command: "+played(t, "print", "ran")+`, env: {GORACE: "atexit_sleep_ms=0"}}`, "verify: {"+verify+"}")))
	require.NoError(t, err)
	ex := executortest.New(t)
	require.NoError(t, f.Add(ex))
	return ex
}

// played is the command of this test binary in a role.
func played(t *testing.T, role string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command, err := json.Marshal(append([]string{self, "play", role}, args...))
	require.NoError(t, err)
	return string(command)
}

func verifiedByProgram(t *testing.T, extra, role string, args ...string) *executor.Executor {
	t.Helper()
	return verifiedBy(t, "exec: {command: "+played(t, role, args...)+`, env: {GORACE: "atexit_sleep_ms=0"}`+extra+"}")
}

func uncertain(t *testing.T, ex *executor.Executor, opts ...executortest.Option) call.Outcome {
	t.Helper()
	o := executortest.Call(t, ex, "f", `{"n":1e400}`, append(opts, executortest.Uncertain())...)
	o.Key, o.Nonce = call.Key{}, ""
	return o
}

func TestVerifyingProgram(t *testing.T) {
	t.Parallel()
	success := func(output string) call.Outcome {
		return call.Outcome{Kind: call.Success, Output: []byte(output)}
	}
	cannotTell := func(reason string) call.Outcome {
		return call.Outcome{Kind: call.Uncertain, Reason: reason}
	}
	content := `[{"type":"input_text","text":"a"}]`
	exit := func(code int) []string { return []string{"exit", strconv.Itoa(code), " the bank\nis away\n"} }
	for name, tt := range map[string]struct {
		extra string
		role  []string
		want  call.Outcome
	}{
		"done":              {"", []string{"print", "receipt 7"}, success(`"receipt 7"`)},
		"done, no output":   {"", []string{"print", ""}, success(`""`)},
		"done, content":     {", output: content", []string{"print", content}, success(content)},
		"arguments":         {"", []string{"cat"}, success(`"{\"n\":1e400}"`)},
		"not done":          {"", exit(exitNotDone), success(`"ran"`)},
		"1":                 {"", exit(1), cannotTell("the bank\nis away")},
		"3":                 {"", exit(3), cannotTell("the bank\nis away")},
		"75":                {"", exit(exitRetry), cannotTell("the bank\nis away")},
		"1, silent":         {"", []string{"exit", "1", ""}, cannotTell("the verifying program exited with status 1")},
		"done, bad content": {", output: content", []string{"print", "x"}, cannotTell("the verify handler failed: the function gave an invalid content array: it is not a JSON array")},
		"too much":          {"", []string{"flood"}, cannotTell("the verify handler failed: result too large (more than 8388608 bytes)")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ex := verifiedByProgram(t, tt.extra, tt.role[0], tt.role[1:]...)
			require.Equal(t, tt.want, uncertain(t, ex))
			require.Equal(t, "ran", executortest.Text(t, executortest.Call(t, ex, "f", "{}")), "a certain call is not verified")
		})
	}
	if runtime.GOOS != "windows" {
		require.Equal(t, cannotTell("the verifying program crashed (signal: killed)"), uncertain(t, verifiedByProgram(t, "", "die")))
	}
	hangs := verifiedByProgram(t, "", "hang", filepath.Join(t.TempDir(), "pid"))
	require.Equal(t, cannotTell("the verify handler did not answer within 500ms"), uncertain(t, hangs, executortest.WithTimeout(500*time.Millisecond)))
}

func TestVerifyingProgramGetsTheCall(t *testing.T) {
	t.Parallel()
	k := call.Key{Session: "s", Turn: "t", Call: "c"}
	env := strings.Split(executortest.Text(t, executortest.Call(t, verifiedByProgram(t, "", "environment"), "f", "{}",
		executortest.WithKey(k), executortest.Uncertain())), "\n")
	for _, want := range []string{"FN_VERIFY=1", "FN_UNCERTAIN=1", "FN_SESSION_ID=s", "FN_FUNCTION=f", "FN_ATTEMPT=1", "IDEMPOTENCY_KEY=" + k.IdempotencyKey()} {
		require.Contains(t, env, want)
	}
	plain := executortest.Text(t, executortest.Call(t, playing(t, "", "environment"), "f", "{}"))
	require.NotContains(t, plain, "FN_VERIFY")
}

func TestVerifyingProgramThatVanished(t *testing.T) {
	t.Parallel()
	path := write(t, one("exec: {command: "+played(t, "print", "ran")+"}", "verify: {exec: {command: [./ok.sh]}}"))
	f, err := Load(path)
	require.NoError(t, err)
	ex := executortest.New(t)
	require.NoError(t, f.Add(ex))
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(path), "ok.sh")))
	o := uncertain(t, ex)
	require.Equal(t, call.Uncertain, o.Kind)
	require.Contains(t, o.Reason, "no such file")
}

func TestVerifyingEndpoint(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]call.Outcome{
		200: {Kind: call.Success, Output: []byte(`"said"`)},
		404: {Kind: call.Success, Output: []byte(`"ran"`)},
		201: {Kind: call.Uncertain, Reason: "said"},
		301: {Kind: call.Uncertain, Reason: "said"},
		400: {Kind: call.Uncertain, Reason: "said"},
		410: {Kind: call.Uncertain, Reason: "said"},
		500: {Kind: call.Uncertain, Reason: "said"},
		503: {Kind: call.Uncertain, Reason: "said"},
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			var got *http.Request
			var body string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				got, body = r, string(raw)
				w.Header().Set("X-Fn-Verdict", "not-done") // counts with 404 only
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "said")
			}))
			t.Cleanup(server.Close)
			k := call.Key{Session: "s", Turn: "t", Call: "c"}
			require.Equal(t, want, uncertain(t, verifiedBy(t, `http: {url: "`+server.URL+`", headers: {A: b}}`), executortest.WithKey(k)))
			require.Equal(t, `{"n":1e400}`, body)
			require.Equal(t, http.MethodPost, got.Method)
			for name, value := range map[string]string{"X-Fn-Verify": "1", "X-Fn-Uncertain": "1", "A": "b", "Idempotency-Key": k.IdempotencyKey(), "X-Fn-Function": "f"} {
				require.Equal(t, value, got.Header.Get(name), name)
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	proxy := uncertain(t, verifiedBy(t, `http: {url: "`+gone.URL+`"}`))
	require.Equal(t, call.Uncertain, proxy.Kind, "a 404 of whatever stands before the endpoint")
	require.Contains(t, proxy.Reason, "404 without X-Fn-Verdict: not-done")
	gone.Close()
	o := uncertain(t, verifiedBy(t, `http: {url: "`+gone.URL+`"}`))
	require.Equal(t, call.Uncertain, o.Kind)
	require.Contains(t, o.Reason, "the function's endpoint gave no whole answer")
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	}))
	t.Cleanup(half.Close)
	require.Equal(t, call.Uncertain, uncertain(t, verifiedBy(t, `http: {url: "`+half.URL+`"}`)).Kind)
}

// The example charges once, whatever is known about the call.
func TestExampleVerify(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the example is a shell script
	}
	ledger := filepath.Join(t.TempDir(), "ledger")
	t.Setenv("LEDGER", ledger)
	f, err := Load(filepath.Join("..", "..", "examples", "executor-verify", "functions.yaml"))
	require.NoError(t, err)
	ex := executortest.New(t)
	require.NoError(t, f.Add(ex))
	charge := func(opts ...executortest.Option) call.Outcome {
		return executortest.Call(t, ex, "charge", `{"customer_id":"123","cents":500}`, opts...)
	}
	o := charge(executortest.Uncertain())
	require.Equal(t, call.Uncertain, o.Kind, "without its ledger nothing is known")
	require.Equal(t, "the ledger is away", o.Reason)
	require.NoError(t, os.WriteFile(ledger, nil, 0o600))
	want := `{"charged":500,"receipt":"` + call.Key{Session: "sess_test", Turn: "turn_test", Call: "call_test"}.IdempotencyKey() + `"}`
	for range 3 {
		require.JSONEq(t, want, executortest.Text(t, charge(executortest.Uncertain())))
	}
	lines, err := os.ReadFile(ledger)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(lines), "\n"))
	require.Equal(t, call.Success, charge(executortest.WithKey(call.Key{Session: "s", Turn: "t", Call: "2"})).Kind)
}
