package natsaccess

import (
	"encoding/json"
	"strings"
)

// JSON is the plan for programs.
func (p Plan) JSON() (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // a subject may end with >
	encoder.SetIndent("", "  ")
	err := encoder.Encode(map[string]any{"pools": p.Grants})
	return text.String(), err
}
