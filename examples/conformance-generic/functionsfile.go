package main

import (
	"fmt"
	"os"
	"strings"
)

// declared is what the functions file says about a function.
type declared struct{ name, properties, policy string }

var all = []declared{
	{name: "echo", policy: "effects: none"},
	{name: "sag mir, wo ☂.*>", policy: "effects: none"},
	{name: "a/" + strings.Repeat("n", 300), policy: "effects: none"},
	{"fail", "text: {type: string}", "effects: none"},
	{"retry", "after_ms: {type: integer}, ok_at: {type: integer}", "effects: idempotent, attempts: 5"},
	{"sleep", "ms: {type: integer}", "effects: idempotent"},
	{"key", "", "effects: idempotent"},
	{"text", "text: {type: string}", "effects: none"},
	{"parts", "", "effects: none"},
	{"object", "", "effects: none"},
	{"nothing", "", "effects: none"},
	{"crash", "", "effects: none"},
	{"typed", "count: {type: integer}", "effects: none"},
	{"block", "ms: {type: integer}", "effects: idempotent"},
	{"stuck", "", "effects: none, timeout: 1s, attempts: 1"},
	{"exit", "unless: {type: string}", "effects: idempotent"},
	{"large", "bytes: {type: integer}", "effects: none"},
	{"pay", "verdict: {type: string}, ms: {type: integer}", "effects: side_effects"},
	{"pay_blind", "ms: {type: integer}", "effects: side_effects"},
	{"pay_park", "ms: {type: integer}", "effects: side_effects, on_uncertain: park"},
}

// functionsFile is the file of cmd/executor. play gives the entry that runs a function.
func functionsFile(play func(function string, verify bool) string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "pool: %s\nfunctions:\n", os.Getenv("CONFORMANCE_POOL"))
	for _, f := range all {
		fmt.Fprintf(&text, "  %q: {description: %q, parameters: {type: object, properties: {%s}}, %s, %s", f.name, "The function "+f.name, f.properties, f.policy, play(f.name, false))
		if f.name == "pay" {
			fmt.Fprintf(&text, ", verify: {%s}", play(f.name, true))
		}
		text.WriteString("}\n")
	}
	return text.String()
}

// programs has each function be a process of this program.
func programs() (func(string, bool) string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return func(function string, _ bool) string {
		return fmt.Sprintf("exec: {command: [%q, function, %q], env: {CONFORMANCE_LOG: %q}, output: %s}",
			self, function, os.Getenv("CONFORMANCE_LOG"), outputOf(function))
	}, nil
}

// endpoints has each function be an address of this process.
func endpoints(address string) func(string, bool) string {
	return func(function string, _ bool) string {
		return fmt.Sprintf("http: {url: %q, output: %s}", "http://"+address+"/", outputOf(function))
	}
}

func outputOf(function string) string {
	switch function {
	case "parts":
		return "content"
	case "nothing":
		return "none"
	}
	return "text"
}
