package call_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

var update = flag.Bool("update", false, "write docs/states.md anew")

// meanings are what docs/states.md says of each state.
var meanings = map[call.State]string{
	call.Absent:    "never seen",
	call.Seen:      "claimed; its publication may or may not have happened",
	call.Held:      "claimed; waits for an executor to register the function",
	call.Queued:    "known to be in the stream, or with an executor",
	call.Retrying:  "an attempt failed for a technical reason; the next one waits for its time",
	call.Parked:    "it may have taken effect and nobody can tell; an operator decides",
	call.Succeeded: "a result is saved, to be submitted",
	call.Failed:    "an error for the model is saved, to be submitted",
	call.Submitted: "the API accepted the result; it is not yet seen to be applied",
	call.Settled:   "the session does not list the call any more: the end",
	call.Cancelled: "the session stopped listing the call before it had a result: the end",
	call.Obsolete:  "the API has another result, or refuses this one for good: the end",
}

// TestStatesAreDocumented holds docs/states.md to the table in the code.
func TestStatesAreDocumented(t *testing.T) {
	t.Parallel()
	want := statesPage()
	const path = "../../docs/states.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644)) //nolint:gosec // a document
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run: go test ./pkg/call -run TestStatesAreDocumented -update")
}

func statesPage() string {
	var b strings.Builder
	b.WriteString("# The states of a call\n\nMade from the table in `pkg/call/state.go`; a test holds it to it. The stores make no other transition. " +
		"A saved result is never replaced: no way leads from one result to another.\n\n```mermaid\nstateDiagram-v2\n")
	name := func(s call.State) string {
		if s == call.Absent {
			return "[*]"
		}
		return string(s)
	}
	table := call.Transitions()
	for _, from := range call.States() {
		for _, to := range table[from] {
			b.WriteString("    " + name(from) + " --> " + name(to) + "\n")
		}
		if from.Final() {
			b.WriteString("    " + name(from) + " --> [*]\n")
		}
	}
	b.WriteString("```\n\n| state | meaning | followed by |\n|---|---|---|\n")
	for _, s := range call.States() {
		var next []string
		for _, to := range table[s] {
			next = append(next, string(to))
		}
		label := string(s)
		if s == call.Absent {
			label = "(absent)"
		}
		b.WriteString("| " + label + " | " + meanings[s] + " | " + strings.Join(slices.Compact(next), ", ") + " |\n")
	}
	b.WriteString("\nA call of a [run](runs.md) has the same states: it is submitted when its output is stored for the run's next request, " +
		"and settled when the run does not list it any more.\n")
	return b.String()
}
