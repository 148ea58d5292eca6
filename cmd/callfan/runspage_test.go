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

// runsPage is the text of docs/runs.md, and its blocks in one language.
func runsPage(t *testing.T, language string) (page string, blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programtest.Root(), "docs", "runs.md"))
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block[1])
	}
	return string(text), blocks
}

var (
	runsCurl   = regexp.MustCompile(`(?s)^curl (?:-N )?(?:-X (\w+) )?http://127\.0\.0\.1:8420(\S+)((?: -H '[^']+')*)(?: -d '([^']+)')?$`)
	curlHeader = regexp.MustCompile(`-H '([^:]+): ([^']+)'`)
)

// curl sends what a curl command of the page sends.
func (d *dev) curl(t *testing.T, command string) (status int, body string) {
	t.Helper()
	m := runsCurl.FindStringSubmatch(command)
	require.NotNil(t, m, command)
	method := m[1]
	switch {
	case method == "" && m[4] != "":
		method = http.MethodPost
	case method == "":
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), method, d.admin+m[2], strings.NewReader(m[4]))
	require.NoError(t, err)
	for _, h := range curlHeader.FindAllStringSubmatch(m[3], -1) {
		req.Header.Set(h[1], h[2])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(raw)
}

// TestRunsPage runs the commands of docs/runs.md.
func TestRunsPage(t *testing.T) {
	t.Parallel()
	d := startAssistant(t, "en")
	const answer = "Beijing today: sunny, 22 degrees, Shanghai: cloudy, 25 degrees, a difference of 3 degrees.\n"
	page, blocks := runsPage(t, "sh")
	require.Contains(t, page, answer)
	_, requests := runsPage(t, "json")
	require.Len(t, requests, 1)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "request.json"), []byte(requests[0]), 0o600))
	shell := func(commands string) string {
		t.Helper()
		code, p := programtest.Run(t, programtest.Command{
			Path: "/bin/sh", Args: []string{"-euc", commands}, Dir: dir, Env: append(d.environment(),
				"PATH="+filepath.Dir(programtest.Build(t, "cmd/callfan"))+":"+os.Getenv("PATH")),
		})
		require.Equal(t, exitOK, code, p.Stderr)
		return p.Stdout.String()
	}
	require.Len(t, blocks, 4)
	require.Equal(t, 2, strings.Count(shell(blocks[0]), answer))
	require.Equal(t, answer, shell(blocks[2]))

	commands := regexp.MustCompile(`(?m)^curl `).Split(strings.TrimSpace(blocks[3]), -1)[1:]
	for i, c := range commands {
		commands[i] = "curl " + strings.TrimSpace(c)
	}
	require.Len(t, commands, 4)
	status, body := d.curl(t, commands[0])
	require.Equal(t, http.StatusCreated, status, body)
	var run runs.Run
	require.NoError(t, json.Unmarshal([]byte(body), &run))
	this := func(commands string) string { return strings.ReplaceAll(commands, "run_1", run.ID) }
	status, events := d.curl(t, this(commands[2]))
	require.Equal(t, http.StatusOK, status)
	for _, line := range regexp.MustCompile("(?m)^\\| `(run\\.[a-z.]+)` \\|").FindAllStringSubmatch(page, -1) {
		require.Contains(t, events, "event: "+line[1]+"\n")
	}
	require.Equal(t, 3, strings.Count(events, "event: run.round\n"))
	require.Equal(t, 3, strings.Count(events, "event: run.answered\n"))
	status, body = d.curl(t, this(commands[1]))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, strings.TrimSpace(answer))
	status, body = d.curl(t, this(commands[3]))
	require.Equal(t, http.StatusAccepted, status)
	require.Contains(t, body, `"status":"completed"`, "it is over")

	status, body = d.curl(t, commands[0])
	require.Equal(t, http.StatusCreated, status)
	require.Contains(t, body, run.ID, "the same key")
	status, body = d.curl(t, strings.Replace(commands[0], "hotter", "colder", 1))
	require.Equal(t, http.StatusConflict, status, body)

	shown := shell(this(blocks[1]))
	require.Equal(t, 3, strings.Count(shown, strings.TrimSpace(answer)))
	require.Equal(t, 2, strings.Count(shown, "calling get_weather\n"))
	require.Regexp(t, `(?m)^`+run.ID+`/\S+ +calculate +settled `, shown)
	require.Equal(t, exitOK, d.Stop())
}

// TestRunsPageNamesEveryReason keeps the tables of docs/runs.md complete.
func TestRunsPageNamesEveryReason(t *testing.T) {
	t.Parallel()
	page, _ := runsPage(t, "sh")
	for _, word := range []string{
		runs.ReasonRounds, runs.ReasonCalls, runs.ReasonTime, runs.ReasonRepeats,
		runs.ReasonRefused, runs.ReasonTooLarge, runs.ReasonLostResponse, runs.ReasonUncertain,
		string(runs.Queued), string(runs.InProgress), string(runs.RequiresAction),
		string(runs.Completed), string(runs.Incomplete), string(runs.Failed), string(runs.Stopped), string(runs.Cancelled),
		runs.NoticeCreated, runs.NoticeRound, runs.NoticeCall, runs.NoticeDispatched, runs.NoticeAnswered, runs.NoticeText, runs.NoticeEnded,
	} {
		require.Contains(t, page, "`"+word+"`")
	}
}
