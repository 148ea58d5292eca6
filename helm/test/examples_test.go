package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const examplesDir = "../examples"

// The manifests of the examples pass the API server in a restricted namespace, and so does callfan with the values beside them.
func TestAPIServerTakesTheExamples(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "examples")
	paths, err := filepath.Glob(filepath.Join(examplesDir, "*/*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 6)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var all objects
		switch name := filepath.Base(path); {
		case name == "nats-values.yaml":
			continue // of another chart
		case strings.HasSuffix(name, "-values.yaml"):
			all = render(t, string(text))
		default:
			all, err = parseObjects(map[string]string{path: string(text)})
			require.NoError(t, err, path)
		}
		for _, o := range all {
			require.NoError(t, c.dryRun(t.Context(), o.Map), "%s: %s %s", path, o.Kind, o.Name)
			var with struct {
				Spec struct {
					Template *corev1.PodTemplateSpec `json:"template"`
				} `json:"spec"`
			}
			require.NoError(t, yaml.Unmarshal(o.Text, &with))
			if with.Spec.Template == nil {
				continue
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"}, Spec: with.Spec.Template.Spec}
			_, err := c.client.CoreV1().Pods(c.namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			require.NoError(t, err, "%s: pod of %s", path, o.Name)
		}
	}
}

// Every file that the READMEs name exists, and the simulator's image is of the chart's version.
func TestExamplesAreComplete(t *testing.T) {
	t.Parallel()
	loaded, err := loadChart()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(examplesDir, "dev/simulator.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "image: ghcr.io/callfan/callfan:"+loaded.Metadata.AppVersion+"\n")
	readme, err := os.ReadFile(filepath.Join(examplesDir, "README.md"))
	require.NoError(t, err)
	named := 0
	for word := range strings.FieldsSeq(string(readme)) {
		if strings.HasPrefix(word, "helm/") {
			named++
			_, err := os.Stat(filepath.Join("../..", word))
			require.NoError(t, err)
		}
	}
	require.Greater(t, named, 5)
}
