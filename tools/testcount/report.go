package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// slow is the duration from which a test is named in the summary.
const slow = 10 * time.Second

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// report prints each package when it is through, and counts.
type report struct {
	out            io.Writer
	packages       map[string]*packageRun
	passed, failed int
	slowest        []event
	// failures repeat, for the end, what tests that failed said of it: servers' logs may be between.
	failures []string
}

// packageRun is what is known of a package that is being tested.
type packageRun struct {
	// output holds the output events in order; what belongs to a test that passed is not shown.
	output  []event
	passed  map[string]bool
	failed  map[string]bool
	skipped []string
	// ran holds the top-level tests that ended.
	ran []string
}

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*packageRun{}}
}

// add takes one line of go test -json. A line that is no event is printed as it is.
func (r *report) add(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		_, _ = r.out.Write(line)
		return
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Package == "":
	case e.Test != "":
		r.of(e.Package).addTest(e)
		if !strings.Contains(e.Test, "/") && e.Elapsed >= slow.Seconds() {
			r.slowest = append(r.slowest, e)
		}
	case e.Action == "output":
		r.of(e.Package).output = append(r.of(e.Package).output, e)
	case e.Action == "pass", e.Action == "fail", e.Action == "skip":
		r.endPackage(e)
	}
}

func (r *report) of(name string) *packageRun {
	if r.packages[name] == nil {
		r.packages[name] = &packageRun{passed: map[string]bool{}, failed: map[string]bool{}}
	}
	return r.packages[name]
}

func (p *packageRun) addTest(e event) {
	switch e.Action {
	case "output":
		p.output = append(p.output, e)
		return
	case "pass":
		p.passed[e.Test] = true
	case "fail":
		p.failed[e.Test] = true
	case "skip":
		p.skipped = append(p.skipped, e.Test)
	default:
		return
	}
	if !strings.Contains(e.Test, "/") {
		p.ran = append(p.ran, e.Test)
	}
}

// endPackage prints what go test prints without -v and adds the package to the counts.
func (r *report) endPackage(e event) {
	p := r.of(e.Package)
	delete(r.packages, e.Package)
	for _, skipped := range p.skipped {
		top, _, _ := strings.Cut(skipped, "/")
		if reason, ok := allowedSkips[e.Package+"."+skipped]; ok {
			fmt.Fprintf(r.out, "skipped %s.%s: %s\n", e.Package, skipped, reason)
			p.ran = slices.DeleteFunc(p.ran, func(test string) bool { return test == skipped })
			continue
		}
		p.failed[top] = true
		fmt.Fprintf(r.out, "--- SKIP: %s.%s counts as failed: make it run, or give a reason in tools/testcount/skips.go\n%s",
			e.Package, skipped, p.said(skipped))
	}
	for _, o := range p.output {
		if p.shown(o, e.Action) {
			fmt.Fprint(r.out, o.Output)
		}
	}
	failedBefore := r.failed
	for _, test := range p.ran {
		if p.failed[test] {
			r.failed++
			r.failures = append(r.failures, fmt.Sprintf("failed: %s.%s\n%s", e.Package, test, p.why(test)))
		} else {
			r.passed++
		}
	}
	if e.Action == "fail" && r.failed == failedBefore {
		r.failed++ // it did not build, or failed before, between or after its tests
	}
}

// shown tells whether go test without -v prints the line: for a package that passed its last line, for one that failed
// the lines of what did not pass.
func (p *packageRun) shown(o event, action string) bool {
	if action != "fail" {
		return o.Test == "" && (strings.HasPrefix(o.Output, "ok  \t") || strings.HasPrefix(o.Output, "?   \t"))
	}
	if strings.HasPrefix(o.Output, "=== ") || p.passed[o.Test] || slices.Contains(p.skipped, o.Test) {
		return false
	}
	return o.Test != "" || o.Output != "PASS\n"
}

func (p *packageRun) said(test string) string {
	var said strings.Builder
	for _, o := range p.output {
		if o.Test == test && !strings.HasPrefix(o.Output, "=== ") && !strings.HasPrefix(strings.TrimSpace(o.Output), "--- SKIP") {
			said.WriteString(o.Output)
		}
	}
	return said.String()
}

// whyLines bounds what is repeated of a test that failed.
const whyLines = 20

// statement is the first line of what a test file says by t.Error, t.Log and the like.
var statement = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// why gives the first lines that test files say in a test that failed, and in its subtests.
func (p *packageRun) why(test string) string {
	var why strings.Builder
	lines, ours := 0, false
	for _, o := range p.output {
		if top, _, _ := strings.Cut(o.Test, "/"); top != test || p.passed[o.Test] || lines == whyLines {
			continue
		}
		if first := statement.FindString(o.Output); first != "" {
			ours = strings.Contains(first, "_test.go:")
		} else if strings.HasPrefix(strings.TrimSpace(o.Output), "--- ") || strings.HasPrefix(o.Output, "=== ") {
			ours = false
		}
		if ours {
			lines++
			why.WriteString(o.Output)
		}
	}
	return why.String()
}

// finish prints the summary. A package that never ended counts as failed, and so does a go test that failed without
// saying for what.
func (r *report) finish(testFailed bool, took time.Duration) (passed, failed int) {
	for name, p := range r.packages {
		for _, o := range p.output {
			fmt.Fprint(r.out, o.Output)
		}
		fmt.Fprintf(r.out, "FAIL\t%s [never ended]\n", name)
		r.failed++
	}
	if testFailed && r.failed == 0 {
		r.failed++
	}
	slices.SortFunc(r.slowest, func(a, b event) int { return int(b.Elapsed - a.Elapsed) })
	for _, e := range r.slowest {
		fmt.Fprintf(r.out, "slow: %s.%s took %.1fs\n", e.Package, e.Test, e.Elapsed)
	}
	for _, failure := range r.failures {
		fmt.Fprint(r.out, failure)
	}
	fmt.Fprintf(r.out, "tests took %s\n%d passed, %d failed\n", took.Round(100*time.Millisecond), r.passed, r.failed)
	return r.passed, r.failed
}
