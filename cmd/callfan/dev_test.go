package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

// dev is a running callfan dev and what it prints.
type dev struct {
	*programtest.Process
	api, nats, admin string
}

var devOutput = regexp.MustCompile(`(?s)callfan is ready\..*API +the simulator, (http://\S+/v1)\n.*health, admin +(http://\S+)\n.*` +
	`export NATS_URL=(nats://\S+)\n.*export OPENAI_BASE_URL=(http://\S+/v1) OPENAI_API_KEY=any\n`)

// startDev runs dev on a directory, the first time on free ports.
func startDev(t *testing.T, dir string, before *dev) *dev {
	t.Helper()
	args := []string{"dev", "--dir", dir}
	if before == nil {
		args = append(args, "--nats-listen", "127.0.0.1:0", "--simulate-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0")
	} else {
		args = append(args, "--nats-listen", strings.TrimPrefix(before.nats, "nats://"), "--listen", strings.TrimPrefix(before.admin, "http://"),
			"--simulate-listen", strings.TrimSuffix(strings.TrimPrefix(before.api, "http://"), "/v1"))
	}
	d := &dev{Process: programtest.Start(t, command(t, args...))}
	d.Await(d.Stdout, "OPENAI_API_KEY=any\n")
	match := devOutput.FindStringSubmatch(d.Stdout.String())
	require.NotNil(t, match, d.Stdout)
	d.api, d.admin, d.nats = match[1], match[2], match[3]
	require.Equal(t, d.api, match[4])
	return d
}

// environment is what dev prints for the others.
func (d *dev) environment() []string {
	return []string{"OPENAI_BASE_URL=" + d.api, "OPENAI_API_KEY=any", "NATS_URL=" + d.nats, "CALLFAN_DISPATCHER=" + d.admin}
}

func (d *dev) callfan(t *testing.T, args ...string) programtest.Command {
	t.Helper()
	c := command(t, args...)
	c.Env = d.environment()
	return c
}

// serve starts an executor of get_customer, a program.
func (d *dev) serve(t *testing.T) *programtest.Process {
	t.Helper()
	dir := t.TempDir()
	functions := filepath.Join(dir, "functions.yaml")
	require.NoError(t, os.WriteFile(functions, []byte("pool: customers\nfunctions:\n  get_customer:\n    exec: {command: [./get_customer.sh]}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "get_customer.sh"), []byte("#!/bin/sh\necho 'known'\n"), 0o700)) //nolint:gosec // it is run
	p := programtest.Start(t, programtest.Command{
		Path: programtest.Build(t, "cmd/executor"), Env: d.environment(), Args: []string{functions},
	})
	p.Await(p.Stderr, "executor serves")
	return p
}

const question = "Look up customers 123 and 456."

func TestDevServesADeveloper(t *testing.T) {
	t.Parallel()
	d := startDev(t, t.TempDir(), nil)
	code, p := programtest.Run(t, d.callfan(t, "ask", question))
	require.Equal(t, exitOK, code, "without executors the agent has no functions")
	require.Contains(t, p.Stdout.String(), "built-in model")

	executor := d.serve(t)
	code, p = programtest.Run(t, d.callfan(t, "ask", question))
	require.Equal(t, exitOK, code)
	require.Contains(t, p.Stdout.String(), `get_customer({"customer_id":"123"}) = `)
	require.Contains(t, p.Stdout.String(), "Customer 123")

	code, p = programtest.Run(t, d.callfan(t, "sessions", "list", "--json"))
	require.Equal(t, exitOK, code)
	var sessions []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(p.Stdout.String()), &sessions))
	session := sessions[len(sessions)-1].ID
	for _, s := range sessions {
		code, p = programtest.Run(t, d.callfan(t, "calls", "list", s.ID))
		require.Equal(t, exitOK, code)
		if strings.Contains(p.Stdout.String(), "get_customer") {
			session = s.ID
			break
		}
	}
	key := regexp.MustCompile(session + `/\S+`).FindString(p.Stdout.String())
	require.NotEmpty(t, key, p.Stdout)
	code, p = programtest.Run(t, d.callfan(t, "calls", "show", key))
	require.Equal(t, exitOK, code)
	require.Contains(t, p.Stdout.String(), "It was answered")
	code, p = programtest.Run(t, d.callfan(t, "calls", "show", "no/such/call"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, p.Stderr.String(), "no record of it")
	code, _ = programtest.Run(t, d.callfan(t, "calls", "show", "no-key"))
	require.Equal(t, exitInvalid, code)

	code, p = programtest.Run(t, d.callfan(t, "functions", "list"))
	require.Equal(t, exitOK, code)
	require.Regexp(t, `(?m)^get_customer +customers +exec +side_effects +fail +1 `, p.Stdout.String())
	code, p = programtest.Run(t, d.callfan(t, "functions", "show", "get_customer"))
	require.Equal(t, exitOK, code)
	require.Regexp(t, `(?m)^total deadline +15m0s$`, p.Stdout.String())
	code, p = programtest.Run(t, d.callfan(t, "functions", "show", "get_custmer"))
	require.Equal(t, exitInvalid, code)
	require.Contains(t, p.Stderr.String(), "there are: get_customer")
	require.Equal(t, exitOK, executor.Stop())

	second := programtest.Start(t, command(t, "dev", "--dir", t.TempDir(), "--nats-listen", strings.TrimPrefix(d.nats, "nats://")))
	require.Equal(t, exitFailed, second.Wait())
	require.Contains(t, second.Stderr.String(), "address already in use")
	require.Equal(t, exitOK, d.Stop())
	require.NotContains(t, d.Stderr.String(), "level=ERROR")
	require.Contains(t, d.Stderr.String(), `msg="connected to NATS" server="in this process"`)
}

func TestDevOwnsItsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startDev(t, dir, nil)
	code, p := programtest.Run(t, command(t, "dev", "--dir", dir, "--nats-listen", "127.0.0.1:0", "--simulate-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, p.Stderr.String(), "in use by another process")
	require.Contains(t, p.Stderr.String(), "use another directory")
	require.Empty(t, p.Stdout.String())
}

func TestDevRefusesStateItCannotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "simulator.json"), []byte(`{"version":99}`), 0o600))
	code, p := programtest.Run(t, command(t, "dev", "--dir", dir, "--nats-listen", "127.0.0.1:0", "--simulate-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, p.Stderr.String(), filepath.Join(dir, "simulator.json"))
	require.Contains(t, p.Stderr.String(), "move it away")
}

// pendingSession makes a session whose call nobody answers yet.
func pendingSession(t *testing.T, d *dev) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"agent": map[string]any{"model": "gpt-6-astra", "tools": []any{map[string]any{
			"type": "function", "name": "get_customer", "description": "d", "parameters": map[string]any{"type": "object"},
		}}},
		"environment": map[string]any{"type": "none"}, "input": question,
	})
	require.NoError(t, err)
	api := client(d.api)
	session, err := api.Beta.Agents.Sessions.New(t.Context(), openai.BetaAgentSessionNewParams{}, option.WithRequestBody("application/json", body))
	require.NoError(t, err)
	d.awaitListed(t, session.ID, func(s listed) bool { return s.Open == 2 })
	return session.ID
}

type listed struct {
	ID   string `json:"id"`
	Open int    `json:"open_calls"`
}

// awaitListed waits until sessions list shows the session so.
func (d *dev) awaitListed(t *testing.T, id string, so func(listed) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		code, p := programtest.Run(t, d.callfan(t, "sessions", "list", "--json"))
		var list []listed
		if code != exitOK || json.Unmarshal([]byte(p.Stdout.String()), &list) != nil {
			return false
		}
		for _, s := range list {
			if s.ID == id {
				return so(s)
			}
		}
		return false
	}, time.Minute, 100*time.Millisecond)
}

func TestDevGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, d *dev, saved func() bool){
		"SIGTERM": func(t *testing.T, d *dev, _ func() bool) { t.Helper(); require.Equal(t, exitOK, d.Stop(), d.Stderr) },
		"SIGKILL": func(t *testing.T, d *dev, saved func() bool) {
			t.Helper()
			require.Eventually(t, saved, 10*time.Second, 10*time.Millisecond, "the state file lags by up to a second")
			d.Kill()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := startDev(t, dir, nil)
			id := pendingSession(t, first)
			end(t, first, func() bool {
				state, err := os.ReadFile(filepath.Join(dir, "simulator.json"))
				return err == nil && strings.Contains(string(state), id)
			})

			again := startDev(t, dir, first)
			require.Equal(t, []string{first.api, first.nats, first.admin}, []string{again.api, again.nats, again.admin})
			executor := again.serve(t)
			api := client(again.api)
			require.Eventually(t, func() bool {
				session, err := api.Beta.Agents.Sessions.Get(t.Context(), id)
				return err == nil && session.Status == openai.AgentSessionStatusIdle
			}, time.Minute, 50*time.Millisecond)
			items, err := api.Beta.Agents.Sessions.Items.List(t.Context(), id, openai.BetaAgentSessionItemListParams{})
			require.NoError(t, err)
			require.Len(t, items.Data, 6, "a question, two calls, two outputs and an answer")
			require.Contains(t, items.Data[0].AsMessage().OutputText(), "Customer 123")
			require.Equal(t, exitOK, executor.Stop())
			require.Equal(t, exitOK, again.Stop())
		})
	}
}
