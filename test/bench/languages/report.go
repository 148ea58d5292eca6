package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// spread is a figure of all rounds.
type spread struct{ median, least, most float64 }

func spreadOf(rounds []round, figure func(n int, r round) float64) spread {
	all := make([]float64, len(rounds))
	for n, r := range rounds {
		all[n] = figure(n, r)
	}
	slices.Sort(all)
	return spread{all[len(all)/2], all[0], all[len(all)-1]}
}

func (s spread) text(format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median, s.least, s.most)
}

// report prints a table: the median of the rounds, and the least and the most of them. Ratios are to Go's of the same round.
func (b *bench) report(out io.Writer, list []subject) error {
	reference := b.results[reference].rounds
	fmt.Fprintf(out, "%d rounds, at most %d calls or %v each, %d handlers at once; median (least–most); %s\n\n", b.rounds, b.calls, b.within, b.concurrency, busy())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "executor\tcalls/s\tof Go's\tCPU s per 10,000 calls\tof Go's\tp50 alone, ms\tserver + driver CPU s\tmemory, MiB\tstart, ms")
	for _, s := range list {
		r := b.results[s.name]
		figures := []string{
			s.name,
			spreadOf(r.rounds, func(_ int, r round) float64 { return r.rate() }).text("%.0f"),
			spreadOf(r.rounds, func(n int, r round) float64 { return r.rate() / reference[n].rate() }).text("%.2f"),
			spreadOf(r.rounds, func(_ int, r round) float64 { return r.cost() / 100 }).text("%.2f"),
			spreadOf(r.rounds, func(n int, r round) float64 { return r.cost() / reference[n].cost() }).text("%.2f"),
			spreadOf(r.rounds, func(_ int, r round) float64 { return float64(r.p50.Microseconds()) / 1000 }).text("%.2f"),
			fmt.Sprintf("%.2f + %.2f", b.share(r, func(r round) time.Duration { return r.server }), b.share(r, func(r round) time.Duration { return r.own })),
			fmt.Sprintf("%d", r.memory>>20),
			fmt.Sprintf("%d", r.start.Milliseconds()),
		}
		fmt.Fprintln(table, strings.Join(figures, "\t"))
	}
	return table.Flush()
}

// share is the median of a processor time, in seconds for 10,000 calls.
func (*bench) share(r *result, of func(round) time.Duration) float64 {
	return spreadOf(r.rounds, func(_ int, r round) float64 { return of(r).Seconds() / float64(r.calls) * 10_000 }).median
}

// busy tells what else the machine does.
func busy() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load unknown"
	}
	return "load of the machine at the end " + strings.Join(strings.Fields(string(load))[:3], " ")
}
