package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/callfan/callfan/internal/natsaccess"
)

const teamsDir = "../examples/ten-teams"

// team is a line of pools.txt.
type team struct {
	name      string
	functions []string
}

func (t team) String() string { return t.name + "=" + strings.Join(t.functions, ",") }

func pools(t *testing.T) (all []team) {
	t.Helper()
	for line := range strings.FieldsSeq(read(t, teamsDir, "pools.txt")) {
		name, functions, _ := strings.Cut(line, "=")
		all = append(all, team{name, strings.Split(functions, ",")})
	}
	require.Len(t, all, 10)
	return all
}

// Each of the ten teams has one small file, whose executor is the pool that `callfan nats permissions` was told of, with its
// functions, and uses the prefixes and the account that it prints.
func TestTenTeams(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, team := range pools(t) {
		lines = append(lines, team.String())
	}
	text, err := accessPlan(t, natsaccess.Options{Accounts: true}, lines...).JSON()
	require.NoError(t, err)
	var printed struct {
		Pools []struct {
			Pool        string
			Permissions struct{ Publish, Subscribe []string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &printed))
	files, err := os.ReadDir(filepath.Join(teamsDir, "teams"))
	require.NoError(t, err)
	require.Len(t, files, 10)
	require.Len(t, printed.Pools, 10)
	for i, team := range pools(t) {
		own := read(t, teamsDir, "teams", team.name+".yaml")
		require.Less(t, strings.Count(own, "\n"), 25, "small")
		all := render(t, read(t, teamsDir, "teams-values.yaml"), own)
		require.Len(t, all.of("Deployment"), 1)
		require.Len(t, all.of("NetworkPolicy"), 1)
		require.Len(t, all.of("Job"), len(all.of("ScaledObject"))-len(fromOne(all)), "from zero, a job registers")

		allowed := printed.Pools[i].Permissions
		require.Equal(t, team.name, printed.Pools[i].Pool)
		pod := podSpecs(t, all)["executor-"+team.name]
		require.Equal(t, team.name, variable(pod, "NATS_USER"))
		require.Contains(t, allowed.Subscribe, variable(pod, "CALLFAN_NATS_INBOX_PREFIX")+".>")
		trigger := all.of("ScaledObject")[0].Map["spec"].(values)["triggers"].([]any)[0].(values)["metadata"].(values)
		require.Equal(t, "CALLFAN", trigger["account"])
		require.Contains(t, allowed.Publish, variable(pod, "CALLFAN_NATS_API_PREFIX")+".CONSUMER.MSG.NEXT."+trigger["stream"].(string)+"."+trigger["consumer"].(string))
		for _, config := range all.of("ConfigMap") { // of callfan's own program
			var file struct{ Functions map[string]any }
			require.NoError(t, yaml.Unmarshal([]byte(typed[corev1.ConfigMap](t, config).Data["functions.yaml"]), &file))
			for name := range file.Functions {
				require.True(t, slices.Contains(team.functions, name), "%s: %s", team.name, name)
			}
			require.Len(t, file.Functions, len(team.functions))
		}
	}
	platform := render(t, read(t, teamsDir, "platform-values.yaml"))
	require.Len(t, platform.of("Deployment"), 1)
	require.Equal(t, "dispatcher", variable(podSpecs(t, platform)["dispatcher"], "NATS_USER"))
}

// fromOne are the ScaledObjects that never go to zero.
func fromOne(all objects) objects {
	return slices.DeleteFunc(all.of("ScaledObject"), func(o object) bool { return o.Map["spec"].(values)["minReplicaCount"] == float64(0) })
}
