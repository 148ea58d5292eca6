package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Status is what became of a test.
type Status string

// The statuses of tests.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is what became of one test.
type Result struct {
	Name   string
	Status Status
	// Reason says why it failed or was skipped.
	Reason string
	// Output is the end of what the executor's processes wrote, for failed tests.
	Output string
	Took   time.Duration
}

// Report is what a run of the suite found.
type Report struct {
	// Language is what the executor registered as its language, empty if it never did.
	Language string
	Level    Level
	// Results are sorted by name.
	Results []Result
	Took    time.Duration
}

// Names lists the tests of a status.
func (r Report) Names(s Status) []string {
	names := []string{}
	for _, result := range r.Results {
		if result.Status == s {
			names = append(names, result.Name)
		}
	}
	return names
}

// OK says that no test failed and at least one passed.
func (r Report) OK() bool {
	return len(r.Names(Failed)) == 0 && len(r.Names(Passed)) > 0
}

// MarshalJSON gives one line: language, level, version of the suite, the counts, the
// names of the tests that failed and were skipped, and the seconds that it took.
func (r Report) MarshalJSON() ([]byte, error) {
	failed, skipped := r.Names(Failed), r.Names(Skipped)
	return json.Marshal(struct {
		Language     string   `json:"language"`
		Level        Level    `json:"level"`
		Version      int      `json:"version"`
		Passed       int      `json:"passed"`
		Failed       int      `json:"failed"`
		Skipped      int      `json:"skipped"`
		FailedTests  []string `json:"failed_tests"`
		SkippedTests []string `json:"skipped_tests"`
		Seconds      float64  `json:"seconds"`
	}{
		r.Language, r.Level, Version, len(r.Names(Passed)), len(failed), len(skipped), failed, skipped,
		float64(r.Took.Milliseconds()) / 1000,
	})
}

// Write prints a table of all tests, what the failed ones were about, and a summary.
func (r Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TEST\tRESULT\tTIME\tREASON")
	for _, result := range r.Results {
		took := ""
		if result.Status != Skipped {
			took = result.Took.Round(10 * time.Millisecond).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", result.Name, result.Status, took, strings.ReplaceAll(result.Reason, "\n", " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	shown := map[string]bool{}
	for _, result := range r.Results {
		if result.Status == Failed && result.Output != "" && !shown[result.Output] {
			shown[result.Output] = true
			fmt.Fprintf(w, "\nThe end of the executor's output, %s:\n%s\n", result.Name, result.Output)
		}
	}
	_, err := fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped in %s (%s, level %s)\n",
		len(r.Names(Passed)), len(r.Names(Failed)), len(r.Names(Skipped)), r.Took.Round(100*time.Millisecond), r.Language, r.Level)
	return err
}

func (p *play) report(took time.Duration) Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.results, func(a, b Result) int { return strings.Compare(a.Name, b.Name) })
	return Report{Language: p.language, Level: p.executor.Level, Results: p.results, Took: took}
}
