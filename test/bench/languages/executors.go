package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// subject is an executor that is measured.
type subject struct {
	name string
	// function is the no-op that it answers.
	function string
	// command runs it in the root of the repository.
	command []string
	// process runs the function of another subject, too, if that is set.
	process string
}

const noop = "test/bench/languages/noop/"

// reference is what the others are compared with.
const reference = "go"

// subjects are all executors; endpoint is what the functions that are HTTP endpoints ask, and dir gets their file. Those that are not built make an error that says how to build them.
func subjects(root, dir, endpoint string, concurrency int, only []string) ([]subject, error) {
	libraries, _ := os.ReadFile(filepath.Join(root, "sdk/java/target/classpath")) // found missing below
	generic := func(file string) []string {
		return []string{"bin/executor", "--concurrency", strconv.Itoa(concurrency), "--log-level", "warn", file}
	}
	httpFile := filepath.Join(dir, "http.yaml")
	text := fmt.Sprintf("pool: bench-http\nfunctions:\n  noop_http:\n    effects: none\n    http: {url: %q}\n", endpoint)
	if err := os.WriteFile(httpFile, []byte(text), 0o600); err != nil {
		return nil, err
	}
	all := []subject{
		{name: "bare", function: "noop_bare", command: []string{"bin/bench-bare"}},
		{name: reference, function: "noop_go", command: []string{"bin/bench-go"}},
		{name: "rust", function: "noop_rust", command: []string{"bin/bench-rust"}},
		{name: "java", function: "noop_java", command: []string{
			"java", "-cp", "bin/bench-java:sdk/java/target/classes:" + strings.TrimSpace(string(libraries)), "Noop",
		}},
		{name: "typescript", function: "noop_typescript", command: []string{"node", noop + "typescript/noop.mjs"}},
		{name: "python", function: "noop_python", command: []string{"sdk/python/.venv/bin/python", noop + "python/noop.py"}},
		{name: "python-sync", function: "noop_python_sync", process: "python"},
		{name: "http", function: "noop_http", command: generic(httpFile)},
		{name: "mcp", function: "noop_mcp", command: generic(noop + "mcp.yaml")},
		{name: "exec", function: "noop_exec", command: generic(noop + "exec.yaml")},
	}
	for _, s := range all {
		for _, word := range s.command {
			if !strings.Contains(word, "/") || strings.Contains(word, ":") || filepath.IsAbs(word) {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, word)); err != nil {
				return nil, fmt.Errorf("%s is missing; remedy: make bench-languages, which builds it", word)
			}
		}
	}
	if len(only) == 0 {
		return all, nil
	}
	for _, name := range only {
		if !slices.ContainsFunc(all, func(s subject) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no executor %q", name)
		}
	}
	return slices.DeleteFunc(all, func(s subject) bool {
		// What carries a chosen one, and the reference, are never left out.
		carries := slices.ContainsFunc(all, func(o subject) bool { return o.process == s.name && slices.Contains(only, o.name) })
		return s.name != reference && !carries && !slices.Contains(only, s.name)
	}), nil
}
