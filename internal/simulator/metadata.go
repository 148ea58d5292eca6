package simulator

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	maxMetadataPairs = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

// parseMetadata reads a metadata object: up to 16 pairs of strings, keys up to 64 and values up to 512 characters.
// Null is the empty map.
func parseMetadata(raw json.RawMessage) (map[string]string, error) {
	if isNull(raw) {
		return nil, nil
	}
	var m map[string]string
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, invalidRequest("metadata must be an object of strings.")
	}
	if len(m) > maxMetadataPairs {
		return nil, invalidRequest("metadata has more than %d pairs.", maxMetadataPairs)
	}
	for key, value := range m {
		if utf8.RuneCountInString(key) > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataValue {
			return nil, invalidRequest("metadata keys have up to %d and values up to %d characters.",
				maxMetadataKey, maxMetadataValue)
		}
	}
	return m, nil
}

// metadataFilter reads the metadata[key]=value pairs of a query. All of them must match.
func metadataFilter(query url.Values) map[string]string {
	var filter map[string]string
	for name, values := range query {
		key, ok := strings.CutPrefix(name, "metadata[")
		if !ok || !strings.HasSuffix(key, "]") || len(values) == 0 {
			continue
		}
		if filter == nil {
			filter = make(map[string]string)
		}
		filter[strings.TrimSuffix(key, "]")] = values[0]
	}
	return filter
}

func matchesAll(metadata, filter map[string]string) bool {
	for key, want := range filter {
		if got, ok := metadata[key]; !ok || got != want {
			return false
		}
	}
	return true
}
