package config

import (
	"fmt"
	"os"

	"github.com/goccy/go-yaml"

	"github.com/callfan/callfan/pkg/call"
)

// LoadPolicies reads a YAML file of function names and the parts of their policies
// that overrule what executors declare. An empty path is no file. Errors name the
// file and the line.
func LoadPolicies(path string) (map[string]call.Policy, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the file of policies cannot be read: %w", err)
	}
	var policies map[string]call.Policy
	if err := yaml.UnmarshalWithOptions(text, &policies, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name, p := range policies {
		// A function with a verify handler may be told to verify; whether there is one
		// is known when it is registered.
		if err := (call.Function{Name: name, Policy: p, Verifies: true}).Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return policies, nil
}
