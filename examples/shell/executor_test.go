//go:build unix

// Package shell holds the test of the executor in this directory.
package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/conformance"
	"github.com/callfan/callfan/pkg/conformance/conformancetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	executor, err := filepath.Abs("conformance.sh")
	require.NoError(t, err)
	conformancetest.Run(t, conformance.Executor{
		Command: executor, Level: conformance.LevelCore, Parallel: 2, // each call is a dozen processes
		Env: []string{"PATH=" + testservers.NATSCLI(t) + string(filepath.ListSeparator) + os.Getenv("PATH")},
	})
}

// That is what the executor says of itself, and what it is for.
func TestItIsSmall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("executor.sh")
	require.NoError(t, err)
	require.Equal(t, 99, bytes.Count(text, []byte("\n")))
}
