package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests run the real go test on small modules.

func testcount(t *testing.T, files map[string]string, args ...string) (code int, output string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var stdout, stderr bytes.Buffer
	code, err := run(dir, append(args, "./..."), &stdout, &stderr)
	require.NoError(t, err, stderr.String())
	return code, stdout.String()
}

func test(bodies ...string) string {
	return "package p\n\nimport \"testing\"\n\n" + strings.Join(bodies, "\n")
}

const (
	passes  = "func TestPasses(t *testing.T) { t.Run(`sub`, func(*testing.T) {}); t.Log(`quiet`) }"
	fails   = "func TestFails(t *testing.T) { t.Run(`sub`, func(t *testing.T) { t.Error(`the reason`) }) }"
	skips   = "func TestSkips(t *testing.T) { t.Skip(`no server`) }"
	skipSub = "func TestSkipsWithin(t *testing.T) { t.Run(`sub`, func(t *testing.T) { t.Skip(`no server`) }) }"
	panics  = "func TestPanics(t *testing.T) { panic(`the cause`) }"
)

func TestPassingPackagesPrintOneLineEach(t *testing.T) {
	t.Parallel()
	code, output := testcount(t, map[string]string{
		"a/a_test.go": test(passes), "b/b_test.go": test(passes), "c/c.go": "package c",
	})
	require.Zero(t, code)
	// Packages come in the order in which they end.
	lines := strings.Split(output, "\n")
	slices.Sort(lines[:3])
	require.Regexp(t, `\A\?   \texample/c\t\[no test files\]\nok  \texample/a\t.*\nok  \texample/b\t.*\ntests took .*\n2 passed, 0 failed\n\z`,
		strings.Join(lines, "\n"))
}

func TestFailuresKeepTheirOutputAndTheExitCode(t *testing.T) {
	t.Parallel()
	code, output := testcount(t, map[string]string{"a/a_test.go": test(passes, fails), "b/b_test.go": test(passes)})
	require.Equal(t, 1, code)
	require.Contains(t, output, "--- FAIL: TestFails")
	require.Contains(t, output, "the reason")
	require.Contains(t, output, "FAIL\texample/a")
	require.Contains(t, output, "ok  \texample/b")
	require.NotContains(t, output, "quiet")
	require.Regexp(t, `(?s)FAIL\texample/a.*\nfailed: example/a.TestFails\n +a_test.go:\d+: the reason\ntests took`, output, "the reason is repeated at the end")
	require.Equal(t, "2 passed, 1 failed", lastLine(output))
}

func TestSkippedTestsFail(t *testing.T) {
	t.Parallel()
	code, output := testcount(t, map[string]string{"a/a_test.go": test(passes, skips, skipSub)})
	require.Equal(t, 1, code)
	require.Contains(t, output, "--- SKIP: example/a.TestSkips counts as failed")
	require.Contains(t, output, "--- SKIP: example/a.TestSkipsWithin/sub counts as failed")
	require.Contains(t, output, "no server")
	require.Equal(t, "1 passed, 2 failed", lastLine(output))
}

func TestWhatFailsOutsideOfTestsCountsOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ source, contains, last string }{
		"build":    {test("func TestBuild(t *testing.T) { undefined() }"), "undefined: undefined", "1 passed, 1 failed"},
		"panic":    {test(passes, panics), "the cause", "2 passed, 1 failed"},
		"testmain": {test(passes, "func TestMain(m *testing.M) { m.Run(); panic(`leak`) }"), "leak", "2 passed, 1 failed"},
		"timeout":  {test(passes, "func TestHangs(t *testing.T) { select {} }"), "test timed out", "2 passed, 1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, output := testcount(t, map[string]string{"a/a_test.go": tc.source, "b/b_test.go": test(passes)}, "-timeout", "3s")
			require.Equal(t, 1, code)
			require.Contains(t, output, tc.contains)
			require.Contains(t, output, "FAIL\texample/a")
			require.Equal(t, tc.last, lastLine(output), output)
		})
	}
}

func TestNoTestAtAllFails(t *testing.T) {
	t.Parallel()
	code, output := testcount(t, map[string]string{"a/a.go": "package a"})
	require.Equal(t, 1, code)
	require.Equal(t, "0 passed, 0 failed", lastLine(output))
}

func TestBadArgumentsFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	code, err := run(dir, []string{"./nowhere"}, &stdout, &stderr)
	require.NoError(t, err)
	require.NotZero(t, code)
	require.Regexp(t, `0 passed, 1 failed\n\z`, stdout.String())
}

func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return lines[len(lines)-1]
}
