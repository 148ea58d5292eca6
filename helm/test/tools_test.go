package test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	helmcmd "helm.sh/helm/v4/pkg/cmd"
	"k8s.io/component-base/cli"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
)

// The test's own program is helm and kubectl as well, when it is called by these names: they are libraries, and need no installation.
func runAsTool() (code int, is bool) {
	switch filepath.Base(os.Args[0]) {
	case "helm":
		command, err := helmcmd.NewRootCmd(os.Stdout, os.Args[1:], func(bool) { slog.SetDefault(slog.New(slog.DiscardHandler)) })
		if err == nil {
			err = command.Execute()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			return 1, true
		}
		return 0, true
	case "kubectl":
		return cli.Run(kubectlcmd.NewDefaultKubectlCommand()), true
	}
	return 0, false
}

// tools makes a directory with the programs helm and kubectl.
func tools(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir = t.TempDir()
	for _, name := range []string{"helm", "kubectl"} {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	return dir
}
