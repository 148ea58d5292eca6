package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	ex := programtest.Build(t, "examples/conformance-go")
	exclusions := filepath.Join(t.TempDir(), "exclude.yaml")
	require.NoError(t, os.WriteFile(exclusions, []byte("outputs/parts: no parts here\n"), 0o600))

	code, list := programtest.Run(t, command(t, "conformance", "--list"))
	require.Zero(t, code)
	require.Contains(t, list.Stdout.String(), "core\tleases/waiting-handler\n")

	code, ran := programtest.Run(t, command(t, "conformance", "--executor", ex, "--run", "^outputs/", "--exclude", exclusions))
	require.Zero(t, code, ran.Stderr.String())
	require.Regexp(t, `(?m)^outputs/parts +skipped +no parts here$`, ran.Stdout.String())
	lines := strings.Split(strings.TrimSpace(ran.Stdout.String()), "\n")
	var report struct {
		Language     string
		Passed       int
		Failed       int
		SkippedTests []string `json:"skipped_tests"`
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &report))
	require.Equal(t, "go", report.Language)
	require.Greater(t, report.Passed, 10)
	require.Equal(t, []string{"outputs/parts"}, report.SkippedTests)

	code, broken := programtest.Run(t, command(t, "conformance", "--executor", "echo I am none; exit 7", "--run", "^stop/idle$"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, broken.Stdout.String(), "the executor ended (exit status 7) before it had registered")
	require.Contains(t, broken.Stdout.String(), "I am none")

	require.NoError(t, os.WriteFile(exclusions, []byte("outputs/gone: it was there once\n"), 0o600))
	for want, args := range map[string][]string{
		"there is no command":    {},
		`no test "outputs/gone"`: {"--executor", ex, "--exclude", exclusions},
		"--run: ":                {"--executor", ex, "--run", "("},
		"no such file":           {"--executor", ex, "--exclude", exclusions + ".gone"},
	} {
		code, refused := programtest.Run(t, command(t, append([]string{"conformance"}, args...)...))
		require.Equal(t, exitInvalid, code, want)
		require.Contains(t, refused.Stderr.String(), want)
	}
}
