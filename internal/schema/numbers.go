package schema

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxDigits bounds the numbers that are compared. Numbers are exact fractions to the
// library, and 1e1000000 alone takes it a tenth of a second.
const maxDigits = 1000

// affordable says whether all numbers of a decoded value can be compared in little time.
func affordable(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if !affordable(member) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if !affordable(item) {
				return false
			}
		}
	case json.Number:
		if len(value) > maxDigits {
			return false
		}
		at := strings.IndexAny(string(value), "eE")
		if at < 0 {
			return true
		}
		exponent, err := strconv.Atoi(string(value[at+1:]))
		return err == nil && -maxDigits <= exponent && exponent <= maxDigits
	}
	return true
}
