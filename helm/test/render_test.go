// Package test checks the chart: what it renders, whether Kubernetes takes it, and that each complaint that users of other
// charts have is answered.
package test

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../callfan"
	release   = "fan"
	namespace = "agents"
)

// values are those of a release.
type values = map[string]any

var loadChart = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load(chartDir) })

// capabilities are those of the oldest Kubernetes that the chart takes.
var capabilities = &common.Capabilities{
	KubeVersion: common.KubeVersion{Version: "v1.30.0", Major: "1", Minor: "30"}, APIVersions: common.DefaultVersionSet,
}

// parse reads values from YAML texts; later ones go before.
func parse(t *testing.T, texts ...string) values {
	t.Helper()
	merged := values{}
	for _, text := range texts {
		var v values
		require.NoError(t, yaml.Unmarshal([]byte(text), &v), text)
		merged = loader.MergeMaps(merged, v)
	}
	return merged
}

// file gives the text of a file of ci/.
func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "ci", name+"-values.yaml"))
	require.NoError(t, err)
	return string(text)
}

// ciNames are the combinations of ci/.
func ciNames(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(chartDir, "ci", "*-values.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 8)
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = strings.TrimSuffix(filepath.Base(path), "-values.yaml")
	}
	return names
}

// texts renders the chart to the text of each template.
func texts(v values) (map[string]string, error) {
	loaded, err := loadChart()
	if err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, v, options, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, all)
}

// object is a rendered object.
type object struct {
	Kind, APIVersion, Name string
	Component              string
	Labels, Annotations    map[string]string
	Text                   []byte
	Map                    map[string]any
}

// objects are those of a release, hooks included.
type objects []object

// parseObjects takes rendered templates apart.
func parseObjects(rendered map[string]string) (objects, error) {
	var all objects
	for _, path := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(path, "NOTES.txt") {
			continue
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(rendered[path])))
		for {
			text, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			var o object
			if err := yaml.UnmarshalStrict(text, &o.Map); err != nil { // a key that stands twice is an error
				return nil, err
			}
			if len(o.Map) == 0 {
				continue
			}
			var head struct {
				Kind       string `json:"kind"`
				APIVersion string `json:"apiVersion"`
				Metadata   struct {
					Name        string            `json:"name"`
					Labels      map[string]string `json:"labels"`
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal(text, &head); err != nil {
				return nil, err
			}
			o.Kind, o.APIVersion, o.Name, o.Text = head.Kind, head.APIVersion, head.Metadata.Name, text
			o.Labels, o.Annotations = head.Metadata.Labels, head.Metadata.Annotations
			o.Component = o.Labels["app.kubernetes.io/component"]
			all = append(all, o)
		}
	}
	return all, nil
}

// render renders the chart with these YAML texts of values.
func render(t *testing.T, from ...string) objects {
	t.Helper()
	rendered, err := texts(parse(t, from...))
	require.NoError(t, err)
	all, err := parseObjects(rendered)
	require.NoError(t, err)
	return all
}

// refusal is the message with which the chart refuses values.
func refusal(t *testing.T, from ...string) string {
	t.Helper()
	_, err := texts(parse(t, from...))
	require.Error(t, err)
	return err.Error()
}

func (all objects) of(kind string) objects {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool { return o.Kind != kind })
}

// one decodes the only object of the kind and component into a typed object. A field that the type does not have is an error.
func one[T any](t *testing.T, all objects, kind, component string) T {
	t.Helper()
	found := slices.DeleteFunc(all.of(kind), func(o object) bool { return o.Component != component })
	require.Len(t, found, 1, "%s of %s", kind, component)
	return typed[T](t, found[0])
}

func typed[T any](t *testing.T, o object) T {
	t.Helper()
	var into T
	require.NoError(t, yaml.UnmarshalStrict(o.Text, &into), "%s %s", o.Kind, o.Name)
	return into
}

func decodeInto(o object, into any) error { return yaml.Unmarshal(o.Text, into) }
