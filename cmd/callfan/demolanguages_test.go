//go:build languages

package main

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/demo"
	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/testservers"
)

// These need the SDKs of all languages: make test-languages prepares them.

func TestLanguagesAnswerAtOnce(t *testing.T) {
	code, p := programtest.Run(t, command(t, "demo", "--languages"))
	require.Equal(t, exitOK, code, p.Stdout.String())
	require.Empty(t, p.Stderr.String())
	for _, name := range demo.Languages() {
		require.Regexp(t, `(?m)^`+name+` +\S+ +\d+\.\d  Hello, world, from \S`, p.Stdout.String())
	}
	titles := regexp.MustCompile(`(?m)^Hello, world, from (\w+)`).FindAllStringSubmatch(p.Stdout.String(), -1)
	var answer []string
	for _, title := range titles {
		answer = append(answer, title[1])
	}
	require.Equal(t, []string{"Go", "Python", "TypeScript", "Java", "Rust"}, answer, "the agent's answer has all, in the order of the calls")
	require.Contains(t, p.Stdout.String(), "0 lost, 0 doubled")
}

func TestLanguagesThatAreChosen(t *testing.T) {
	server := testservers.NATS(t)
	code, p := programtest.Run(t, command(t, "demo", "--languages", "python,go", "--json", "--nats", server.URL()))
	require.Equal(t, exitOK, code, p.Stderr.String())
	var counts map[string]int
	require.NoError(t, json.Unmarshal([]byte(p.Stdout.String()), &counts))
	require.Equal(t, []int{2, 2, 2, 2, 0, 0}, []int{
		counts["languages"], counts["calls"], counts["executed"], counts["submitted"], counts["lost"], counts["doubled"],
	})
	requireNoStreams(t, server.URL())
}
