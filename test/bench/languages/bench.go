package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// bench measures executors that run side by side, one after the other, in rounds.
type bench struct {
	options
	dispatcher *dispatcher
	server     *process
	processes  map[string]*process // by the subject's name
	results    map[string]*result
}

// result is what was measured of a subject.
type result struct {
	start  time.Duration // until it was registered
	rounds []round
	memory int64 // bytes
}

// round is one measurement.
type round struct {
	calls int
	took  time.Duration
	// Processor times in it: of the executor, of nats-server, of the benchmark itself.
	executor, server, own time.Duration
	// p50 is the median time of a call while there is no other.
	p50 time.Duration
}

func (r round) rate() float64 { return float64(r.calls) / r.took.Seconds() }

// cost is the executor's processor time for one call, in microseconds.
func (r round) cost() float64 { return float64(r.executor.Microseconds()) / float64(r.calls) }

// startWithin is how long an executor may take until it is registered.
const startWithin = time.Minute

func (b *bench) open(ctx context.Context, dir string, s subject, env []string) error {
	b.results[s.name] = &result{}
	began := time.Now()
	if s.process == "" {
		p, err := start(b.root, dir, s.name, s.command, env)
		if err != nil {
			return err
		}
		b.processes[s.name] = p
	}
	err := poll(ctx, startWithin, s.name, func() error {
		if _, ok := b.dispatcher.registry.Function(s.function); !ok {
			return errNotRegistered
		}
		return nil
	})
	b.results[s.name].start = time.Since(began)
	return err
}

func (b *bench) process(s subject) *process {
	if s.process != "" {
		return b.processes[s.process]
	}
	return b.processes[s.name]
}

const (
	// Virtual machines translate what they have run often: the first calls do not count.
	warmCalls = 20000
	warmTime  = 12 * time.Second
	// Calls that are alone.
	singleCalls = 300
	singleTime  = 3 * time.Second
	// afterwards is the time in which the last acks are sent; it counts for nobody.
	afterwards = 100 * time.Millisecond
)

func (b *bench) measure(ctx context.Context, list []subject) error {
	for _, s := range list {
		if _, _, err := b.dispatcher.run(ctx, s.function, min(warmCalls, b.calls), warmTime); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for n := range b.rounds {
		// Each round begins with another one.
		for i := range list {
			s := list[(i+n)%len(list)]
			r, err := b.round(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d  %-12s %6d calls  %7.0f calls/s  %6.0f µs each  p50 %v\n", n+1, s.name, r.calls, r.rate(), r.cost(), r.p50.Round(time.Microsecond))
			b.results[s.name].rounds = append(b.results[s.name].rounds, r)
			b.results[s.name].memory = resident(b.process(s).cmd.Process.Pid)
		}
	}
	return nil
}

func (b *bench) round(ctx context.Context, s subject) (r round, err error) {
	before, err := b.times(s)
	if err != nil {
		return r, err
	}
	if r.calls, r.took, err = b.dispatcher.run(ctx, s.function, b.calls, b.within); err != nil {
		return r, err
	}
	select {
	case <-time.After(afterwards):
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
	after, err := b.times(s)
	if err != nil {
		return r, err
	}
	r.executor, r.server, r.own = after[0]-before[0], after[1]-before[1], after[2]-before[2]
	single, err := b.dispatcher.one(ctx, s.function, min(singleCalls, b.calls), singleTime)
	if err != nil {
		return r, err
	}
	slices.Sort(single)
	r.p50 = single[len(single)/2]
	return r, nil
}

// times are the processor times of the executor, of nats-server and of this process so far.
func (b *bench) times(s subject) (times [3]time.Duration, err error) {
	if times[0], err = cpuTime(b.process(s).cmd.Process.Pid); err != nil {
		return times, err
	}
	if times[1], err = cpuTime(b.server.cmd.Process.Pid); err != nil {
		return times, err
	}
	times[2], _, err = processTime(os.Getpid()) // all others are its children
	return times, err
}
