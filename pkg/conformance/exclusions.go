package conformance

import (
	"fmt"
	"os"

	"github.com/goccy/go-yaml"
)

// ReadExclusions reads a file of YAML or JSON that maps names of tests to the reasons
// why they are excluded. An empty file excludes nothing. Its errors wrap
// ErrInvalidExecutor.
func ReadExclusions(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidExecutor, err)
	}
	exclude := map[string]string{}
	if err := yaml.UnmarshalWithOptions(text, &exclude, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%w: %s: not a mapping of tests to reasons: %s", ErrInvalidExecutor, path, yaml.FormatError(err, false, false))
	}
	return exclude, nil
}
