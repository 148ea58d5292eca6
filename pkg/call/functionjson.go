package call

import (
	"encoding/json"
	"fmt"
)

// AppendJSON appends the function as JSON with the very bytes of its parameters;
// json.Marshal would make them compact and escape characters (ADR 0008). An error
// leaves dst as it was.
func (f Function) AppendJSON(dst []byte) ([]byte, error) {
	if len(f.Parameters) > 0 && !json.Valid(f.Parameters) {
		return dst, fmt.Errorf("%w %q: parameters is not valid JSON", ErrInvalidFunction, f.Name)
	}
	policy, err := json.Marshal(f.Policy)
	if err != nil {
		return dst, fmt.Errorf("%w %q: %w", ErrInvalidFunction, f.Name, err)
	}
	dst = appendText(append(dst, `{"name":`...), f.Name)
	if f.Description != "" {
		dst = appendText(append(dst, `,"description":`...), f.Description)
	}
	if len(f.Parameters) > 0 {
		dst = append(append(dst, `,"parameters":`...), f.Parameters...)
	}
	if f.Verifies {
		dst = append(dst, `,"verifies":true`...)
	}
	return append(append(append(dst, `,"policy":`...), policy...), '}'), nil
}

func appendText(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string always marshals
	return append(dst, quoted...)
}
