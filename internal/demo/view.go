package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

// view shows the steps of calls.
type view interface {
	step(step)
	// progress is called every now and then with the counts of calls.
	progress(claimed, saved, settled int)
	close()
}

// words say what a state means to somebody who sees the system for the first time.
var words = map[call.State]string{
	call.Seen:      "claimed, handed to the executors",
	call.Held:      "claimed, waiting for an executor",
	call.Queued:    "with an executor",
	call.Succeeded: "result saved",
	call.Failed:    "error saved",
	call.Submitted: "submitted, accepted by the API",
	call.Settled:   "settled: the session has it",
	call.Cancelled: "cancelled",
	call.Obsolete:  "answered elsewhere",
}

// inRuns are the words that differ for calls of runs.
var inRuns = map[call.State]string{
	call.Submitted: "output stored for the next request",
	call.Settled:   "settled: the run has it",
}

func (s step) words() string {
	if text, ok := inRuns[s.To]; ok && runs.IsRun(s.Key.Session) {
		return text
	}
	return words[s.To]
}

func short(id string) string {
	if len(id) > 14 {
		return id[:6] + "…" + id[len(id)-6:]
	}
	return id
}

// lines prints one line a step.
type lines struct {
	out io.Writer
	// function is the width of the names of functions.
	function int
}

func (v lines) step(s step) {
	fmt.Fprintf(v.out, "%7.1f ms  %-14s %-14s %-*s  %s\n", ms(s.at), short(s.Key.Session), short(s.Key.Call), v.function, s.Function, s.words())
}
func (lines) progress(int, int, int) {}
func (lines) close()                 {}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// table redraws one row a call.
type table struct {
	out   io.Writer
	width int
	// function is the width of the names of functions.
	function int
	order    []call.Key
	rows     map[call.Key]step
	drawn    int
}

func (v *table) step(s step) {
	if _, ok := v.rows[s.Key]; !ok {
		v.order = append(v.order, s.Key)
	}
	v.rows[s.Key] = s
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	line := func(format string, args ...any) {
		text := []rune(fmt.Sprintf(format, args...))
		if v.width > 0 && len(text) >= v.width {
			text = text[:v.width-1]
		}
		b.WriteString("\x1b[2K" + string(text) + "\n")
	}
	line("%-14s  %-14s  %-*s  %10s  %s", "session", "call", v.function, "function", "since (ms)", "state")
	for _, k := range v.order {
		r := v.rows[k]
		line("%-14s  %-14s  %-*s  %10.1f  %s", short(k.Session), short(k.Call), v.function, r.Function, ms(r.at), r.words())
	}
	v.drawn = len(v.order) + 1
	_, _ = io.WriteString(v.out, b.String())
}
func (*table) progress(int, int, int) {}
func (*table) close()                 {}

// bar shows how far a load is: on a terminal one line that is drawn again, otherwise
// a line every second.
type bar struct {
	out   io.Writer
	live  bool
	total int
	last  time.Time
}

func (*bar) step(step) {}

func (v *bar) progress(claimed, saved, settled int) {
	every, end := time.Second, "\n"
	if v.live {
		every, end = 100*time.Millisecond, "\r"
	}
	if time.Since(v.last) < every && settled < v.total {
		return
	}
	v.last = time.Now()
	const cells = 30
	done := 0
	if v.total > 0 {
		done = min(cells, cells*settled/v.total)
	}
	fmt.Fprintf(v.out, "[%s%s] %d calls: %d claimed, %d saved, %d settled%s",
		strings.Repeat("#", done), strings.Repeat(".", cells-done), v.total, claimed, saved, settled, end)
}

func (v *bar) close() {
	if v.live {
		fmt.Fprintln(v.out)
	}
}

// quiet shows nothing.
type quiet struct{}

func (quiet) step(step)              {}
func (quiet) progress(int, int, int) {}
func (quiet) close()                 {}

func (o Options) view() view {
	function := 12
	for _, name := range o.Languages {
		function = max(function, len(language{name: name}.function()))
	}
	switch {
	case o.JSON:
		return quiet{}
	case o.Sessions > 0:
		return &bar{out: o.Out, live: o.Live, total: o.calls()}
	case o.Live:
		return &table{out: o.Out, width: o.Width, function: function, rows: map[call.Key]step{}}
	default:
		return lines{o.Out, function}
	}
}
