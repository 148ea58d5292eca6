package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/pkg/call"
)

func TestLoadPolicies(t *testing.T) {
	t.Parallel()
	load := func(text string) (map[string]call.Policy, error) {
		path := filepath.Join(t.TempDir(), "policies.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return config.LoadPolicies(path)
	}
	got, err := load("charge:\n  timeout: 2m\n  attempts: 5\n  backoff: {initial: 3s, multiplier: 1.5}\n  on_uncertain: verify\n")
	require.NoError(t, err)
	require.Equal(t, map[string]call.Policy{"charge": {
		Timeout: call.Duration(2 * time.Minute), Attempts: 5, OnUncertain: call.UncertainVerify,
		Backoff: call.Backoff{Initial: call.Duration(3 * time.Second), Multiplier: 1.5},
	}}, got)
	for want, text := range map[string]string{
		"[2:3] unknown field \"timout\"": "f:\n  timout: 1s\n",
		"use none, idempotent":           "f: {effects: maybe}\n",
		"attempts is -1":                 "f: {attempts: -1}\n",
		"policies.yaml":                  "f: [\n",
	} {
		_, err := load(text)
		require.ErrorContains(t, err, want)
	}
	_, err = config.LoadPolicies(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	none, err := config.LoadPolicies("")
	require.NoError(t, err)
	require.Empty(t, none)
}
