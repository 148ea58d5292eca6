package samples

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	beijing  = `{"city": "北京", "weather": "晴", "temp_c": 22}`
	shanghai = `{"city": "上海", "weather": "多云", "temp_c": 25}`
)

// TestResponsesSamples runs the samples of function calling in the Responses API, and compares what they print and the
// outputs that the simulator received for their calls.
func TestResponsesSamples(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		prints  string
		outputs []string
	}{
		"weather_once.py": {"北京今天晴、22 度。", []string{beijing}},
		"weather_loop.py": {"北京今天晴、22 度。", []string{beijing}},
		"assistant.py": {
			"北京今天晴、22 度,上海多云、25 度,两地温差 3 度。", []string{beijing, shanghai, `{"result": 3}`},
		},
		"streaming.py": {"get_weather {\"city\":\"北京\"}\nget_weather {\"city\":\"上海\"}", []string{"", ""}},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			url := simulate(t)
			require.Equal(t, want.prints, strings.TrimSpace(run(t, url, pythonProgram(t, script))))
			require.Equal(t, want.outputs, received(t, url))
		})
	}
}

// received returns the output of each call of the Responses API in the order of the calls, "" for one without.
func received(t *testing.T, url string) []string {
	t.Helper()
	var body struct {
		Outputs []struct {
			Contents []struct {
				Output string `json:"output"`
			} `json:"contents"`
		} `json:"outputs"`
	}
	require.NoError(t, json.Unmarshal(get(t, url+"/_sim/outputs"), &body))
	var outputs []string
	for _, call := range body.Outputs {
		var output string
		for _, content := range call.Contents {
			output += content.Output
		}
		outputs = append(outputs, output)
	}
	return outputs
}

func TestToolChoice(t *testing.T) {
	t.Parallel()
	var called map[string][]string
	require.NoError(t, json.Unmarshal([]byte(run(t, simulate(t), pythonProgram(t, "tool_choice.py"))), &called))
	require.Equal(t, map[string][]string{
		"default":      {"get_weather", "get_weather"},
		"auto":         {"get_weather", "get_weather"},
		"required":     {"get_weather"},
		"one function": {"get_weather"},
		"none":         {},
		"not parallel": {"get_weather"},
	}, called)
}
