package queue

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// schemas are those of protocol/schema, by file name without its ending.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	paths, err := filepath.Glob("../../protocol/schema/*.json")
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	ids := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		ids[name] = "urn:callfan:protocol:1:" + name
		if err := c.AddResource(ids[name], doc); err != nil {
			return nil, err
		}
	}
	compiled := map[string]*jsonschema.Schema{}
	for name, id := range ids {
		if compiled[name], err = c.Compile(id); err != nil {
			return nil, err
		}
	}
	return compiled, nil
})

// payloadFits checks what a schema of the protocol says about a payload.
func payloadFits(t *testing.T, name string, payload []byte, want bool, title string) {
	t.Helper()
	all, err := schemas()
	require.NoError(t, err)
	require.Contains(t, all, name)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err == nil {
		err = all[name].Validate(value)
	}
	if want {
		require.NoError(t, err, title)
	} else {
		require.Error(t, err, title)
	}
}
