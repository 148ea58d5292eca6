// Package conformancetest runs the conformance suite as a Go test.
package conformancetest

import (
	"testing"

	"github.com/callfan/callfan/pkg/conformance"
)

// Run checks the executor as a test, with one subtest for each test of the suite, whose
// names are those of conformance.Tests. Excluded tests and those of a higher level are not run.
func Run(t *testing.T, e conformance.Executor) {
	t.Helper()
	report, err := e.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range report.Results {
		t.Run(result.Name, func(t *testing.T) {
			switch result.Status {
			case conformance.Failed:
				t.Errorf("%s\nThe end of the executor's output:\n%s", result.Reason, result.Output)
			case conformance.Skipped:
				t.Log("excluded: " + result.Reason)
			case conformance.Passed:
			}
		})
	}
	if line, err := report.MarshalJSON(); err == nil {
		t.Logf("%s", line)
	}
	if len(report.Results) == 0 {
		t.Error("no test was run; look at Only and Exclude")
	}
}
