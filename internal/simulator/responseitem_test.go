package simulator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLongestOutput needs no server: requests of this size would take the other tests' time.
func TestLongestOutput(t *testing.T) {
	t.Parallel()
	item := func(output string) []byte {
		return []byte(`{"type":"function_call_output","call_id":"c","output":"` + output + `"}`)
	}
	longest := strings.Repeat("x", 10_485_758) + "北京"
	_, err := parseItem(item(longest), "input[0]")
	require.NoError(t, err, "characters count, not bytes")
	_, err = parseItem(item(longest+"x"), "input[0]")
	require.EqualError(t, err, "400 string_above_max_length: Invalid 'input[0].output': string too long. Expected a string with "+
		"maximum length 10485760, but got a string with length 10485761 instead.")
}
