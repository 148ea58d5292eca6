package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Every object of every combination fits the schemas of three minor versions of Kubernetes, and those of KEDA and of the
// Prometheus operator. A field that a schema does not name is an error.
func TestSchemas(t *testing.T) {
	t.Parallel()
	custom, err := customSchemas()
	require.NoError(t, err)
	for _, module := range kubernetesModules {
		t.Run(strings.TrimPrefix(module, "k8s.io/"), func(t *testing.T) {
			t.Parallel()
			schemas, err := kubernetesSchemas(module)
			require.NoError(t, err)
			maps.Copy(schemas, custom)
			checked := map[string]int{}
			for _, name := range ciNames(t) {
				for _, o := range render(t, file(t, name)) {
					kind := o.APIVersion + " " + o.Kind
					schema, ok := schemas[kind]
					require.True(t, ok, "%s has no schema for %s", module, kind)
					body, err := jsonschema.UnmarshalJSON(strings.NewReader(jsonOf(t, o.Map)))
					require.NoError(t, err)
					require.NoError(t, schema(body), "%s: %s %s", name, o.Kind, o.Name)
					checked[o.Kind]++
				}
			}
			require.Len(t, checked, 13, "every kind that the chart can make: %v", checked)
			// What it would notice.
			wrong := render(t, file(t, "default"), "dispatcher: {securityContext: {readonlyRootFilesystem: true}}").of("Deployment")[0]
			body, err := jsonschema.UnmarshalJSON(strings.NewReader(jsonOf(t, wrong.Map)))
			require.NoError(t, err)
			require.ErrorContains(t, schemas["apps/v1 Deployment"](body), "readonlyRootFilesystem")
		})
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// validate judges an object.
type validate func(body any) error

// kubernetesSchemas are those of the API description in the module, by "apiVersion Kind". They are compiled when they are asked.
func kubernetesSchemas(module string) (map[string]validate, error) {
	dir, err := moduleDir(module)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "api/openapi-spec/swagger.json"))
	if err != nil {
		return nil, err
	}
	var described struct {
		Definitions map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(text, &described); err != nil {
		return nil, err
	}
	for name, definition := range described.Definitions {
		switch {
		case strings.HasSuffix(name, ".util.intstr.IntOrString"):
			described.Definitions[name] = map[string]any{"type": []any{"string", "integer"}}
		case strings.HasSuffix(name, ".api.resource.Quantity"):
			described.Definitions[name] = map[string]any{"type": []any{"string", "number"}}
		default:
			strict(definition)
		}
	}
	found := map[string]validate{}
	compiler := newCompiler()
	if err := compiler.AddResource("kubernetes.json", map[string]any{"definitions": described.Definitions}); err != nil {
		return nil, err
	}
	for name, definition := range described.Definitions {
		kinds, _ := definition.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			k, _ := kind.(map[string]any)
			version := strings.TrimPrefix(fmt.Sprintf("%v/%v", k["group"], k["version"]), "/")
			found[fmt.Sprintf("%s %v", version, k["kind"])] = compiled(compiler, "kubernetes.json#/definitions/"+name)
		}
	}
	return found, nil
}

// customSchemas are those of the definitions of custom resources.
func customSchemas() (map[string]validate, error) {
	paths, err := definitionFiles()
	if err != nil {
		return nil, err
	}
	found := map[string]validate{}
	compiler := newCompiler()
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var definition struct {
			Spec struct {
				Group    string                `json:"group"`
				Names    struct{ Kind string } `json:"names"`
				Versions []struct {
					Name   string `json:"name"`
					Schema struct {
						OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(text, &definition); err != nil {
			return nil, err
		}
		for _, version := range definition.Spec.Versions {
			schema := version.Schema.OpenAPIV3Schema
			strict(schema)
			schema["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object"}
			name := fmt.Sprintf("custom-%d-%s.json", i, version.Name)
			if err := compiler.AddResource(name, map[string]any{"definitions": map[string]any{"it": schema}}); err != nil {
				return nil, err
			}
			found[definition.Spec.Group+"/"+version.Name+" "+definition.Spec.Names.Kind] = compiled(compiler, name+"#/definitions/it")
		}
	}
	return found, nil
}

func newCompiler() *jsonschema.Compiler {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft4) // what API descriptions are written in
	return compiler
}

func compiled(compiler *jsonschema.Compiler, at string) validate {
	return func(body any) error {
		schema, err := compiler.Compile(at)
		if err != nil {
			return err
		}
		return schema.Validate(body)
	}
}

// strict closes every object that names its properties, and takes out what is no JSON Schema.
func strict(node any) {
	switch node := node.(type) {
	case map[string]any:
		if node["x-kubernetes-int-or-string"] == true {
			delete(node, "type")
		}
		delete(node, "format")  // of Go: int32 and the like
		delete(node, "pattern") // of RE2, where it is one of a custom resource
		properties, ok := node["properties"].(map[string]any)
		_, open := node["additionalProperties"]
		if ok && !open && node["x-kubernetes-preserve-unknown-fields"] != true {
			node["additionalProperties"] = false
		}
		if ok {
			for _, property := range properties {
				strict(property)
			}
		}
		for key, child := range node {
			if key != "properties" {
				strict(child)
			}
		}
	case []any:
		for _, child := range node {
			strict(child)
		}
	}
}
