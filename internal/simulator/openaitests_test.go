package simulator_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

const openaiModule = "github.com/openai/openai-go/v3"

// openaiTestsNotRun lists the tests of openai-go that cannot pass against the simulator, with the reason. All others
// pass; keep it so.
var openaiTestsNotRun = map[string]string{
	"TestResponseCompactWithOptionalParams": "items are not compacted here",
}

// openaiTestFiles are openai-go's own tests of what the simulator imitates.
var openaiTestFiles = []string{
	"betaagentsession*_test.go", "responses/response_test.go", "responses/inputitem_test.go", "responses/inputtoken_test.go",
	"conversations/conversation_test.go", "conversations/item_test.go",
}

// TestOpenAIGoTests runs openai-go's own tests against the simulator. Their files are copied into one package of a
// module whose path lies under openai-go's, so that its internal test package may be imported and the library itself is
// not compiled a second time.
func TestOpenAIGoTests(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{Fixtures: true})
	moduleDir := strings.TrimSpace(goOutput(t, ".", "list", "-m", "-f", "{{.Dir}}", openaiModule))
	ourMod := strings.TrimSpace(goOutput(t, ".", "env", "GOMOD"))

	dir := t.TempDir()
	var files []string
	for _, pattern := range openaiTestFiles {
		found, err := filepath.Glob(filepath.Join(moduleDir, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	want := make(map[string]bool)
	inPackage := regexp.MustCompile(`(?m)^package \w+_test$`)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		content = inPackage.ReplaceAll(content, []byte("package openai_test"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o600))
		for _, m := range declared.FindAllSubmatch(content, -1) {
			want[string(m[1])] = true
		}
	}
	mod, err := os.ReadFile(ourMod)
	require.NoError(t, err)
	mod = regexp.MustCompile(`(?m)^module .*$`).ReplaceAll(mod, []byte("module "+openaiModule+"/simulatortests"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o600))
	sum, err := os.ReadFile(filepath.Join(filepath.Dir(ourMod), "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))

	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-vet=off", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TEST_API_BASE_URL="+b.url, "GOFLAGS=-mod=mod", "GOWORK=off")
	out, runErr := cmd.CombinedOutput()
	for name := range want {
		if reason, excluded := openaiTestsNotRun[name]; excluded {
			t.Logf("%s is not expected to pass: %s", name, reason)
			continue
		}
		require.True(t, bytes.Contains(out, []byte("--- PASS: "+name+" ")), "%s did not pass:\n%s", name, out)
	}
	if len(openaiTestsNotRun) == 0 {
		require.NoError(t, runErr, "%s", out)
	}
	t.Logf("%d of openai-go's tests passed", len(want)-len(openaiTestsNotRun))
}

func goOutput(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err, "go %v", args)
	return string(out)
}
