//go:build unix

// Command run makes one chaos run and writes its report; `make chaos` is the usual way to it.
//
// It exits with 1 when something was lost, doubled or wrong, with 2 when the run could not be made, and with 3 when a planted
// fault was not caught.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/callfan/callfan/test/chaos"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := chaos.Config{Out: os.Stderr}
	flag.DurationVar(&cfg.Duration, "time", 30*time.Minute, "how long calls are asked for and faults are made")
	flag.Uint64Var(&cfg.Seed, "seed", 0, "seed of the workload and of the faults; 0 draws one")
	flag.Float64Var(&cfg.Rate, "rate", 13, "calls asked for in a second")
	flag.DurationVar(&cfg.Gap, "gap", 0, "mean time between two faults of one process; 15s, or less for a planted fault, unless given")
	flag.DurationVar(&cfg.Settle, "settle", 4*time.Minute, "bound of the wait for the end of all turns")
	flag.StringVar(&cfg.Bug, "bug", "", "plant a fault: ack-before-save, no-fence or no-claim")
	flag.StringVar(&cfg.Dir, "dir", "", "keep logs and records here")
	faults := flag.String("faults", "", "only these, with commas: executor, dispatcher, nats, redis, api")
	partitions := flag.Bool("partitions", true, "cut processes off the network, by namespaces, where the machine allows it")
	flag.Parse()
	if *faults != "" {
		cfg.Faults = strings.Split(*faults, ",")
	}
	if *partitions {
		code, ran, err := chaos.Isolate(ctx)
		if ran {
			os.Exit(code)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "no process will be cut off the network:", err)
		}
	}
	report, err := chaos.Run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := report.Write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	switch {
	case cfg.Bug != "" && !report.Caught:
		fmt.Fprintf(os.Stderr, "the planted fault %s was not caught\n", cfg.Bug)
		os.Exit(3)
	case !report.Pass:
		os.Exit(1)
	}
}
