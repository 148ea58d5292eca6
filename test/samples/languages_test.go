package samples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

// remedy is what a failure for want of an SDK says.
const remedy = "an SDK is not installed; remedy: make samples-deps"

func goProgram(t *testing.T, args ...string) programtest.Command {
	t.Helper()
	return programtest.Command{Path: programtest.Build(t, "test/samples/go"), Args: args}
}

func pythonProgram(t *testing.T, script string, args ...string) programtest.Command {
	t.Helper()
	const python = "python/.venv/bin/python"
	require.FileExists(t, "python/.venv/installed", remedy)
	return programtest.Command{
		Path: python, Args: append([]string{"-B", "python/" + script}, args...), Env: []string{"PYTHONUTF8=1"},
	}
}

func javascriptProgram(t *testing.T, script string, args ...string) programtest.Command {
	t.Helper()
	node, err := exec.LookPath("node")
	require.NoError(t, err, "remedy: make deps")
	require.DirExists(t, "javascript/node_modules/openai", remedy)
	return programtest.Command{Path: node, Args: append([]string{"javascript/" + script}, args...)}
}

// javaClasses is the class path of the samples in Java, which are compiled once.
var javaClasses struct {
	once sync.Once
	path string
	err  string
}

func javaProgram(t *testing.T, class string, args ...string) programtest.Command {
	t.Helper()
	java, err := exec.LookPath("java")
	require.NoError(t, err, "remedy: make deps-java")
	javaClasses.once.Do(func() { javaClasses.path, javaClasses.err = compileJava() })
	require.Empty(t, javaClasses.err)
	return programtest.Command{
		Path: java, Args: append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", javaClasses.path, class}, args...),
	}
}

func compileJava() (path, failure string) {
	sdk, err := os.ReadFile("java/target/classpath")
	if err != nil {
		return "", remedy
	}
	for jar := range strings.SplitSeq(strings.TrimSpace(string(sdk)), string(os.PathListSeparator)) {
		if _, err := os.Stat(jar); err != nil {
			return "", jar + " is gone; remedy: rm -r test/samples/java/target && make samples-deps"
		}
	}
	sources, err := filepath.Glob("java/*.java")
	if err != nil {
		return "", err.Error()
	}
	const classes = "java/target/classes"
	cmd := exec.Command("javac", append([]string{"-d", classes, "-cp", strings.TrimSpace(string(sdk))}, sources...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "javac: " + err.Error() + ": " + string(out) + " (remedy when it is missing: make deps-java)"
	}
	return classes + string(os.PathListSeparator) + strings.TrimSpace(string(sdk)), ""
}
