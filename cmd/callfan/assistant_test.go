package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/runs"
)

// assistantPage is the commands of examples/assistant/README.md, in the order of the page.
func assistantPage(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(programtest.Root(), "examples", "assistant", "README.md"))
	require.NoError(t, err)
	var lines []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	return lines
}

// startAssistant starts dev and the example in a language.
func startAssistant(t *testing.T, lang string) *dev {
	t.Helper()
	d := startDev(t, t.TempDir(), nil)
	p := programtest.Start(t, programtest.Command{
		Path: programtest.Build(t, "examples/assistant"), Args: []string{"-lang", lang}, Env: d.environment(),
	})
	p.Await(p.Stderr, "executor serves")
	return d
}

// documented runs a command as it is written for the root of the repository.
func (d *dev) documented(t *testing.T, line string) *programtest.Process {
	t.Helper()
	require.Contains(t, line, "go run ./cmd/callfan ")
	code, p := programtest.Run(t, programtest.Command{
		Path: "/bin/sh", Args: []string{"-euc", strings.Replace(line, "go run ./cmd/callfan", programtest.Build(t, "cmd/callfan"), 1)},
		Env: d.environment(), Dir: programtest.Root(),
	})
	require.Equal(t, exitOK, code, "%s: %s", line, p.Stderr)
	return p
}

// asRun gives what the command prints with --json.
func (d *dev) asRun(t *testing.T, line string) runs.Run {
	t.Helper()
	var run runs.Run
	require.NoError(t, json.Unmarshal([]byte(d.documented(t, strings.Replace(line, "/cmd/callfan run ", "/cmd/callfan run --json ", 1)).Stdout.String()), &run))
	return run
}

// called are the functions that each round called.
func called(run runs.Run) [][]string {
	var rounds [][]string
	for _, round := range run.Rounds {
		var names []string
		for _, c := range round.Calls {
			names = append(names, c.Function)
		}
		rounds = append(rounds, names)
	}
	return rounds
}

// outputs are what the simulator received for the calls of a run, in their order.
func (d *dev) outputs(t *testing.T, run runs.Run) []string {
	t.Helper()
	res, err := http.Get(strings.TrimSuffix(d.api, "/v1") + "/_sim/outputs") //nolint:noctx // a test's request
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	var got struct {
		Outputs []struct {
			CallID   string `json:"call_id"`
			Contents []struct {
				Output string `json:"output"`
			} `json:"contents"`
		} `json:"outputs"`
	}
	require.NoError(t, json.Unmarshal(body, &got), string(body))
	byCall := map[string]string{}
	for _, o := range got.Outputs {
		require.Len(t, o.Contents, 1, "one output a call")
		byCall[o.CallID] = o.Contents[0].Output
	}
	var outputs []string
	for _, round := range run.Rounds {
		for _, c := range round.Calls {
			outputs = append(outputs, byCall[c.ID])
		}
	}
	return outputs
}

// TestAssistantInChinese runs the commands of examples/assistant/README.md: the questions of the tutorial and its exercise.
func TestAssistantInChinese(t *testing.T) {
	t.Parallel()
	page := assistantPage(t)
	require.Equal(t, []string{"go run ./cmd/callfan dev", "go run ./examples/assistant -lang zh"}, page[:2])
	d := startAssistant(t, "zh")
	const (
		answer = "北京今天晴、22 度,上海多云、25 度,两地温差 3 度。"
		clock  = `\d\d:\d\d`
	)
	for i, want := range []struct {
		question string
		called   [][]string
		answer   string
	}{
		{"北京和上海哪个更热", [][]string{{"get_weather", "get_weather"}, {"calculate"}, nil}, regexp.QuoteMeta(answer)},
		{"北京和上海今天各是", [][]string{{"get_weather", "get_weather"}, {"calculate"}, nil}, regexp.QuoteMeta(answer)},
		{"Beijing or Shanghai", nil, ""}, // in English, below
		{"现在几点了", [][]string{{"get_time"}, nil}, "现在是 " + clock + "。"},
		{"这个点北京还适合", [][]string{{"get_time", "get_weather"}, nil}, "现在 " + clock + ",北京今天晴、22 度。"},
		{"--tool-choice get_weather", [][]string{{"get_weather"}, {"get_time"}, nil}, "现在是 " + clock + "。"},
		{"tied.json", [][]string{{"get_weather"}, nil}, "没有可用的工具,我无法回答。"},
	} {
		line := page[2+i]
		require.Contains(t, line, want.question)
		if want.called == nil {
			continue
		}
		require.Regexp(t, "(?m)^"+want.answer+"$", d.documented(t, line).Stdout.String())
		run := d.asRun(t, line)
		require.Equal(t, want.called, called(run), line)
		require.Regexp(t, "^"+want.answer+"$", run.Text)
		require.Equal(t, runs.Completed, run.Status)
	}
	require.Len(t, page, 9)

	run := d.asRun(t, page[2])
	require.Equal(t, []string{
		`{"city":"北京","weather":"晴","temp_c":22}`, `{"city":"上海","weather":"多云","temp_c":25}`, `{"result":3}`,
	}, d.outputs(t, run))
	shown := d.documented(t, page[3])
	require.Equal(t, []int{2, 1, 2, 1}, []int{
		strings.Count(shown.Stdout.String(), "calling get_weather\n"), strings.Count(shown.Stdout.String(), "calling calculate\n"),
		strings.Count(shown.Stdout.String(), "get_weather answered\n"), strings.Count(shown.Stdout.String(), "calculate answered\n"),
	})
	require.True(t, strings.HasSuffix(shown.Stdout.String(), "answered\n"+answer+"\n"), shown.Stdout)
	require.Equal(t, exitOK, d.Stop())
}

func TestAssistantInEnglish(t *testing.T) {
	t.Parallel()
	page := assistantPage(t)
	d := startAssistant(t, "en")
	run := d.asRun(t, page[4])
	require.Equal(t, [][]string{{"get_weather", "get_weather"}, {"calculate"}, nil}, called(run))
	require.Equal(t, "Beijing today: sunny, 22 degrees, Shanghai: cloudy, 25 degrees, a difference of 3 degrees.", run.Text)
	require.Equal(t, []string{
		`{"city":"Beijing","weather":"sunny","temp_c":22}`, `{"city":"Shanghai","weather":"cloudy","temp_c":25}`, `{"result":3}`,
	}, d.outputs(t, run))
	const command = "go run ./cmd/callfan run --tools get_weather,calculate,get_time "
	for question, want := range map[string][][]string{
		`"What time is it?"`: {{"get_time"}, nil},
		`"Is it good to go for a jog in Beijing at this hour?"`:        {{"get_time", "get_weather"}, nil},
		`--tool-choice get_weather "What time is it?"`:                 {{"get_weather"}, {"get_time"}, nil},
		`--no-parallel "What is the weather in Beijing and Shanghai?"`: {{"get_weather"}, {"get_weather"}, {"calculate"}, nil},
	} {
		require.Equal(t, want, called(d.asRun(t, command+question)), question)
	}
	require.Equal(t, exitOK, d.Stop())
}
