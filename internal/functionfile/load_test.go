package functionfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor/executortest"
)

// write puts a functions file into a directory of its own, with an executable
// program ok.sh and a file that is not executable.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ok.sh"), []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain.txt"), nil, 0o600))
	path := filepath.Join(dir, "functions.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLoad(t *testing.T) {
	t.Parallel()
	f, err := Load(write(t, `
pool: tools
version: "3"
functions:
  get_time:
    description: |
      The time.
    parameters:
      type: object
      properties: {zone: {type: string, enum: [UTC, "<local>"], default: null}, n: {type: integer, maximum: 9007199254740993, multipleOf: 0.5}}
      additionalProperties: false
    timeout: 5s
    queue_timeout: 1m30s
    effects: none
    exec: {command: [./ok.sh, --utc], dir: ., env: {A: b}, output: text}
  "wetter, heute":
    http: {url: "http://127.0.0.1:9000/weather", output: content}
`))
	require.NoError(t, err)
	require.Equal(t, "tools", f.Pool)
	require.Equal(t, "3", f.Version)
	require.Equal(t, "exec, http", f.Language())
	ex := executortest.New(t)
	require.NoError(t, f.Add(ex))
	got := ex.Functions()
	require.Len(t, got, 2)
	require.Equal(t, call.Function{
		Name: "get_time", Description: "The time.\n",
		Parameters: []byte(`{"type":"object","properties":{"zone":{"type":"string","enum":["UTC","<local>"],"default":null},"n":{"type":"integer","maximum":9007199254740993,"multipleOf":0.5}},"additionalProperties":false}`),
		Policy:     call.Policy{Timeout: call.Duration(5 * time.Second), QueueTimeout: call.Duration(90 * time.Second), Effects: call.EffectsNone},
	}, got[0])
	require.Equal(t, call.Function{Name: "wetter, heute"}, got[1])
}

func TestPolicyIsLoaded(t *testing.T) {
	t.Parallel()
	load := func(lines ...string) call.Function {
		f, err := Load(write(t, one(append(lines, "exec: {command: [./ok.sh]}")...)))
		require.NoError(t, err)
		ex := executortest.New(t)
		require.NoError(t, f.Add(ex))
		return ex.Functions()[0]
	}
	f := load("total_deadline: 10m", "attempts: 5", "backoff: {initial: 500ms, max: 30s, multiplier: 3, jitter: 0.5}", "on_uncertain: verify",
		`verify: {http: {url: "http://127.0.0.1:9000/verify"}}`)
	require.Equal(t, call.Function{Name: "f", Verifies: true, Policy: call.Policy{
		TotalDeadline: call.Duration(10 * time.Minute), Attempts: 5, OnUncertain: call.UncertainVerify,
		Backoff: call.Backoff{Initial: call.Duration(500 * time.Millisecond), Max: call.Duration(30 * time.Second), Multiplier: 3, Jitter: 0.5},
	}}, f)
	require.Equal(t, call.UncertainVerify, load("verify: {exec: {command: [./ok.sh]}}").WithDefaults().OnUncertain)
	require.Equal(t, call.UncertainFail, load("verify: {exec: {command: [./ok.sh]}}", "on_uncertain: fail").WithDefaults().OnUncertain)
	require.Equal(t, call.UncertainRerun, load("on_uncertain: rerun").WithDefaults().OnUncertain)
	require.Equal(t, call.UncertainPark, load("on_uncertain: park").WithDefaults().OnUncertain)
	require.Equal(t, call.UncertainPark, load("on_uncertain: park", "verify: {exec: {command: [./ok.sh]}}").WithDefaults().OnUncertain)
	require.Equal(t, call.UncertainFail, load("effects: side_effects").WithDefaults().OnUncertain)
}

// one is a file with one function of these lines, which start on line 4.
func one(lines ...string) string {
	return "pool: tools\nfunctions:\n  f:\n    " + strings.Join(lines, "\n    ") + "\n"
}

func TestWhatIsWrongIsNamedWithItsLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"empty":              {"", "FILE: the file is empty; it needs pool and functions"},
		"only a comment":     {"# nothing\n", "FILE: the file is empty; it needs pool and functions"},
		"not YAML":           {"pool: tools\nfunctions: [", "FILE:2:12: not valid YAML: sequence end token ']' not found"},
		"bad indentation":    {"pool: tools\n functions: x\n", "FILE:1:7: not valid YAML: mapping value is not allowed in this context"},
		"several documents":  {"pool: a\n---\npool: b\n", "FILE:3:5: the file has several documents; keep one"},
		"a list":             {"- pool\n", "FILE:1:1: the file must be a mapping of keys to values, not a list"},
		"a text":             {"hello\n", "FILE:1:1: the file must be a mapping of keys to values, not a text"},
		"unknown key":        {"pool: a\nfuntions: {}\n", `FILE:2:1: the file has no key "funtions"; did you mean "functions"? (known keys: pool, version, functions, mcp)`},
		"no pool":            {"functions: {}\n", "FILE: pool is missing; add `pool: NAME`, the name of this deployment"},
		"bad pool":           {"pool: my pool\n", `FILE:1:7: pool is "my pool"; use 1 to 64 letters, digits, underscores and dashes`},
		"pool is a number":   {"pool: 5\n", "FILE:1:7: pool must be a text, not a number; put 5 in quotes"},
		"no functions":       {"pool: a\n", "FILE: functions is missing; add `functions:` with at least one function, or `mcp:` with at least one server"},
		"empty functions":    {"pool: a\nfunctions: {}\n", "FILE:2:12: functions is empty; add at least one function"},
		"null functions":     {"pool: a\nfunctions:\n", "FILE:2:12: functions must be a mapping of keys to values, not empty"},
		"functions is list":  {"pool: a\nfunctions:\n  - f\n", "FILE:3:3: functions must be a mapping of keys to values, not a list"},
		"duplicate function": {"pool: a\nfunctions:\n  f: {exec: {command: [./ok.sh]}}\n  f: {exec: {command: [./ok.sh]}}\n", `FILE:4:3: functions has the key "f" twice, first on line 3; remove one`},
		"name is a number":   {"pool: a\nfunctions:\n  5: {}\n", "FILE:3:3: functions: a key must be a text; put 5 in quotes"},
		"empty name":         {"pool: a\nfunctions:\n  \"\": {}\n", "FILE:3:3: a function's name is empty; name it as the model calls it"},
		"empty function":     {"pool: a\nfunctions:\n  f:\n", `FILE:3:6: function "f" must be a mapping of keys to values, not empty`},
		"neither":            {one("description: x"), `FILE:3:3: function "f" has neither exec nor http; add the one that runs it`},
		"both":               {one("exec: {command: [./ok.sh]}", `http: {url: "http://h"}`), `FILE:5:5: function "f" has both exec and http; keep one`},
		"unknown member":     {one("timout: 5s"), `FILE:4:5: function "f" has no key "timout"; did you mean "timeout"? (known keys: description, parameters, timeout, queue_timeout, total_deadline, attempts, backoff, effects, on_uncertain, verify, exec, http)`},
		"far unknown member": {one("retries: 5"), `FILE:4:5: function "f" has no key "retries" (known keys: description, parameters, timeout, queue_timeout, total_deadline, attempts, backoff, effects, on_uncertain, verify, exec, http)`},
		"timeout, no unit":   {one("timeout: 5"), `FILE:4:14: function "f": timeout is 5; use a positive duration with a unit, such as 500ms, 5s or 2m`},
		"timeout, bad":       {one("timeout: soon"), `FILE:4:14: function "f": timeout is "soon"; use a positive duration with a unit, such as 500ms, 5s or 2m`},
		"timeout, negative":  {one("queue_timeout: -5s"), `FILE:4:20: function "f": queue_timeout is "-5s"; use a positive duration with a unit, such as 500ms, 5s or 2m`},
		"effects":            {one("effects: some"), `FILE:4:14: function "f": effects is "some"; use none, idempotent or side_effects`},
		"total_deadline":     {one("total_deadline: 0s"), `FILE:4:21: function "f": total_deadline is "0s"; use a positive duration with a unit, such as 500ms, 5s or 2m`},
		"attempts":           {one("attempts: 0"), `FILE:4:15: function "f": attempts is 0; use a number from 1 to 1000`},
		"attempts, part":     {one("attempts: 1.5"), `FILE:4:15: function "f": attempts is 1.5; use a whole number from 1 to 1000`},
		"attempts, text":     {one("attempts: many"), `FILE:4:15: function "f": attempts must be a number from 1 to 1000, not a text`},
		"attempts, negative": {one("attempts: -1"), `FILE:4:15: function "f": attempts is -1; use a number from 1 to 1000`},
		"backoff":            {one("backoff: 5s"), `FILE:4:14: function "f": backoff must be a mapping of keys to values, not a text`},
		"backoff, unknown":   {one("backoff: {first: 5s}"), `FILE:4:15: function "f": backoff has no key "first" (known keys: initial, max, multiplier, jitter)`},
		"backoff, initial":   {one("backoff: {initial: 5}"), `FILE:4:24: function "f": backoff: initial is 5; use a positive duration with a unit, such as 500ms, 5s or 2m`},
		"backoff, max":       {one("backoff: {initial: 5s, max: 1s}"), `FILE:4:5: function "f": backoff: max is 1s, less than initial, 5s; swap them`},
		"backoff, factor":    {one("backoff: {multiplier: 0.5}"), `FILE:4:27: function "f": backoff: multiplier is 0.5; use a number from 1 to 1000`},
		"backoff, .nan":      {one("backoff: {multiplier: .nan}"), `FILE:4:27: function "f": backoff: multiplier must be a number from 1 to 1000, not a nan`},
		"backoff, jitter":    {one("backoff: {jitter: 2}"), `FILE:4:23: function "f": backoff: jitter is 2; use a number from 0 to 1`},
		"backoff, no jitter": {one("backoff: {jitter: 0}"), `FILE:4:23: function "f": backoff: jitter is 0; use more than 0, so that calls which failed together do not come back together`},
		"on_uncertain":       {one("on_uncertain: pray"), `FILE:4:19: function "f": on_uncertain is "pray"; use rerun, verify, fail or park`},
		"nothing to verify":  {one("exec: {command: [./ok.sh]}", "on_uncertain: verify"), `FILE:5:19: function "f": on_uncertain is verify, and there is no verify; add the one that finds out, or use park, fail or rerun`},
		"verify is empty":    {one("verify: {}"), `FILE:4:5: function "f": verify has neither exec nor http; add the one that finds out`},
		"verify by both":     {one(`verify: {exec: {command: [./ok.sh]}, http: {url: "http://h"}}`), `FILE:4:42: function "f": verify has both exec and http; keep one`},
		"verify, unknown":    {one("verify: {command: [./ok.sh]}"), `FILE:4:14: function "f": verify has no key "command" (known keys: exec, http)`},
		"verify, missing":    {one("verify: {exec: {command: [./gone.sh]}}"), `FILE:4:31: function "f": verify: exec: command: the program DIR/gone.sh does not exist; relative paths count from dir, which defaults to the file's directory`},
		"verify, bad url":    {one("verify: {http: {url: h}}"), `FILE:4:26: function "f": verify: http: url is "h"; write a whole address such as http://127.0.0.1:9000/path`},
		"only verify":        {one("verify: {exec: {command: [./ok.sh]}}"), `FILE:3:3: function "f" has neither exec nor http; add the one that runs it`},
		"description":        {one("description: [a]"), `FILE:4:18: function "f": description must be a text, not a list`},
		"parameters, text":   {one("parameters: '{}'"), `FILE:4:17: function "f": parameters must be a mapping of keys to values, not a text`},
		"parameters, array":  {one("parameters: {type: array}"), `FILE:4:17: function "f": parameters must be the JSON Schema of an object: write ` + "`type: object`"},
		"parameters, schema": {one("parameters: {type: object, required: city}"), `FILE:4:17: function "f": parameters is not a JSON Schema: required cannot be a string`},
		"parameters, .inf":   {one("parameters: {maximum: .inf}"), `FILE:4:27: function "f": parameters: JSON has no .inf`},
		"alias":              {one("parameters: &p {type: object}"), `FILE:4:17: anchors and aliases are not supported; write the value out`},
		"merge key":          {one("<<: {timeout: 5s}"), `FILE:4:5: merge keys are not supported; write the keys out`},
		"tag":                {one("description: !!str x"), `FILE:4:18: tags are not supported; remove !!str`},
		"exec is a text":     {one("exec: ./ok.sh"), `FILE:4:11: function "f": exec must be a mapping of keys to values, not a text`},
		"no command":         {one("exec: {dir: .}"), `FILE:4:5: function "f": exec: command is missing; add ` + "`command: [PROGRAM, ARGUMENT, …]`"},
		"command is a text":  {one("exec: {command: ./ok.sh}"), `FILE:4:21: function "f": exec: command must be a list, not a text`},
		"command is empty":   {one("exec: {command: []}"), `FILE:4:12: function "f": exec: command is empty; name the program`},
		"command, number":    {one("exec: {command: [./ok.sh, 5]}"), `FILE:4:31: function "f": exec: command must be a text, not a number; put 5 in quotes`},
		"missing program":    {one("exec: {command: [./gone.sh]}"), `FILE:4:22: function "f": exec: command: the program DIR/gone.sh does not exist; relative paths count from dir, which defaults to the file's directory`},
		"not in PATH":        {one("exec: {command: [no-such-program]}"), `FILE:4:22: function "f": exec: command: the program "no-such-program" is not in PATH; install it or write its path`},
		"not executable":     {one("exec: {command: [./plain.txt]}"), `FILE:4:22: function "f": exec: command: the program DIR/plain.txt is not executable; run chmod +x on it`},
		"no directory":       {one("exec: {command: [./ok.sh], dir: gone}"), `FILE:4:37: function "f": exec: dir: DIR/gone is not a directory; relative paths count from the file's directory`},
		"env, name":          {one("exec: {command: [./ok.sh], env: {A-B: x}}"), `FILE:4:38: function "f": exec: env: "A-B" is not the name of a variable; use letters, digits and underscores`},
		"env, reserved":      {one("exec: {command: [./ok.sh], env: {FN_CALL_ID: x}}"), `FILE:4:38: function "f": exec: env: FN_CALL_ID is set for each call; choose another name`},
		"env, number":        {one("exec: {command: [./ok.sh], env: {PORT: 80}}"), `FILE:4:44: function "f": exec: env: PORT must be a text, not a number; put 80 in quotes`},
		"env, missing":       {one("exec: {command: [./ok.sh], env: {A: '${NO_SUCH_VARIABLE}'}}"), `FILE:4:41: function "f": exec: env: A: the environment variable NO_SUCH_VARIABLE is not set; set it before starting the executor`},
		"exec output":        {one("exec: {command: [./ok.sh], output: json}"), `FILE:4:40: function "f": exec: output is "json"; use text, content or none`},
		"exec, unknown":      {one("exec: {comand: [./ok.sh]}"), `FILE:4:12: function "f": exec has no key "comand"; did you mean "command"? (known keys: command, dir, env, output)`},
		"no url":             {one("http: {}"), `FILE:4:5: function "f": http: url is missing; add the address that is posted to`},
		"bad url":            {one("http: {url: localhost/path}"), `FILE:4:17: function "f": http: url is "localhost/path"; write a whole address such as http://127.0.0.1:9000/path`},
		"other scheme":       {one(`http: {url: "ftp://h/"}`), `FILE:4:17: function "f": http: url is "ftp://h/"; write a whole address such as http://127.0.0.1:9000/path`},
		"secret in url":      {one(`http: {url: "http://u:hidden@h/"}`), `FILE:4:17: function "f": http: url holds a user or password; send it by a header from the environment, such as Authorization: "Basic ${NAME}"`},
		"header, name":       {one(`http: {url: "http://h/", headers: {"a b": x}}`), `FILE:4:40: function "f": http: headers: "a b" is not the name of a header`},
		"header, reserved":   {one(`http: {url: "http://h/", headers: {idempotency-key: x}}`), `FILE:4:40: function "f": http: headers: idempotency-key is set for each call; remove it`},
		"header, missing":    {one(`http: {url: "http://h/", headers: {Authorization: "Bearer ${NO_SUCH_VARIABLE}"}}`), `FILE:4:55: function "f": http: headers: Authorization: the environment variable NO_SUCH_VARIABLE is not set; set it before starting the executor`},
		"header, control":    {one(`http: {url: "http://h/", headers: {A: "x\ny"}}`), `FILE:4:43: function "f": http: headers: A has a control character in its value, perhaps a line break at the end of the variable`},
		"http, unknown":      {one(`http: {url: "http://h/", method: GET}`), `FILE:4:30: function "f": http has no key "method" (known keys: url, headers, output)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, tt.text)
			_, err := Load(path)
			var fault *Error
			require.ErrorAs(t, err, &fault)
			got := strings.ReplaceAll(err.Error(), path, "FILE")
			got = strings.ReplaceAll(got, filepath.Dir(path), "DIR")
			require.Equal(t, tt.want, got)
		})
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	_, err := Load("no/such/file.yaml")
	require.EqualError(t, err, "no/such/file.yaml: the file does not exist; give the path of a functions file")
	_, err = Load(t.TempDir())
	require.ErrorContains(t, err, "the file cannot be read")
}

func TestVariablesAreExpanded(t *testing.T) {
	t.Setenv("FUNCTIONFILE_TOKEN", "s3cret")
	f, err := Load(write(t, one(`exec: {command: [./ok.sh], env: {A: "x ${FUNCTIONFILE_TOKEN} $${B} $C {D}"}}`)))
	require.NoError(t, err)
	require.Len(t, f.Functions, 1)
	l := loader{getenv: os.LookupEnv}
	got, err := l.expand(nil, "x ${FUNCTIONFILE_TOKEN} $${B} $C {D} ${", "")
	require.NoError(t, err)
	require.Equal(t, "x s3cret ${B} $C {D} ${", got)
}
