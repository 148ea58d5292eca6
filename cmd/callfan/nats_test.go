package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/testservers"
)

// The commands of docs/nats-access.md print what it shows. That servers take it, and allow no more, is proved by the
// tests of internal/natsaccess.
func TestTheGuideToNATSAccess(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/nats-access.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```sh\n([^`]*)\n```\n(?:[^`]*?\n```\n([^`]*)```\n)?").FindAllStringSubmatch(string(page), -1)
	require.Len(t, shown, 3)
	dir := filepath.Dir(programtest.Build(t, "cmd/callfan"))
	home := t.TempDir()
	for _, match := range shown {
		script := match[1]
		if strings.HasSuffix(script, "| sh") {
			script = "nsc add operator --name operator\nnsc add account --name CALLFAN\n" + script
		}
		cmd := exec.Command("sh", "-euc", script)
		cmd.Dir = home
		path := strings.Join([]string{dir, testservers.NSC(t), os.Getenv("PATH")}, string(os.PathListSeparator))
		cmd.Env = append(programtest.Environ(), "PATH="+path, "HOME="+home, "TMPDIR="+home, "NSC_HOME="+home+"/nsc", "NKEYS_PATH="+home+"/keys",
			"XDG_DATA_HOME="+home+"/data", "XDG_CONFIG_HOME="+home+"/config")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "%s", &stderr)
		if match[2] != "" {
			require.Equal(t, match[2], string(out))
		}
	}
	require.FileExists(t, home+"/keys/creds/operator/CALLFAN/weather.creds")
}

func TestNATSPermissionsAsJSON(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	require.Zero(t, run([]string{"nats", "permissions", "--format=json", "--accounts", "crm-1=a", "crm-1=a,b"}, strings.NewReader(""), &stdout, &stderr), &stderr)
	var printed struct {
		Pools []struct {
			Pool, Account string
			Permissions   struct{ Publish, Subscribe []string }
			Exports       []struct{ Subject, Local string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout.String()), &printed))
	require.Len(t, printed.Pools, 1)
	require.Equal(t, "CRM_1", printed.Pools[0].Account)
	require.Equal(t, []string{"_INBOX_crm-1.>", "fn.cancel.a", "fn.cancel.b"}, printed.Pools[0].Permissions.Subscribe)
	require.Len(t, printed.Pools[0].Exports, len(printed.Pools[0].Permissions.Publish)+2)
}
