package test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
)

// helm lint --strict of every combination of values.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, name := range ciNames(t) {
		lint := action.NewLint()
		lint.Strict, lint.Namespace = true, namespace
		result := lint.Run([]string{chartDir}, parse(t, file(t, name)))
		require.Empty(t, result.Errors, name)
		for _, message := range result.Messages {
			if message.Err.Error() != "icon is recommended" {
				require.LessOrEqual(t, message.Severity, 1, "%s: %v", name, message)
			}
		}
	}
}
