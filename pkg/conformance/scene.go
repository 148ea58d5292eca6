package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// scene is a server, a dispatcher and the executor's processes, which some checks share.
type scene struct {
	name   string
	config rigConfig
	// act does what the checks are about, before them: what it fails with, they all fail
	// with. Nil starts a process and waits until it is registered.
	act    func(*trial)
	checks []check
	// ordered has the checks run one after the other; otherwise they run at once.
	ordered bool
}

// check is one named test.
type check struct {
	name  string
	level Level
	run   func(*trial)
}

func core(name string, run func(*trial)) check { return check{name, LevelCore, run} }
func full(name string, run func(*trial)) check { return check{name, LevelFull, run} }

// play is one run of the suite.
type play struct {
	executor Executor
	full     bool

	mu       sync.Mutex
	results  []Result
	language string
}

// selected are the scene's checks that are to be run. Excluded ones are recorded.
func (p *play) selected(s scene) []check {
	var checks []check
	for _, c := range s.checks {
		if only := p.executor.Only; only != nil && !only.MatchString(c.name) {
			continue
		}
		if reason, excluded := p.executor.Exclude[c.name]; excluded {
			p.record(Result{Name: c.name, Status: Skipped, Reason: reason})
			continue
		}
		if c.level == LevelFull && !p.full {
			continue
		}
		checks = append(checks, c)
	}
	return checks
}

func (p *play) record(r Result) {
	p.mu.Lock()
	p.results = append(p.results, r)
	p.mu.Unlock()
	if p.executor.Done != nil {
		p.executor.Done(r)
	}
}

// checkTimeout bounds one check, and the act of a scene, beside their own waits.
const checkTimeout = 90 * time.Second

func (p *play) perform(ctx context.Context, s scene, checks []check) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		p.allFailed(checks, err.Error(), "")
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := newRig(p, s, dir)
	defer r.close()
	act := s.act
	if act == nil {
		act = func(t *trial) { t.serve(); t.start() }
	}
	if _, err := attempt(ctx, r, s.name, act); err != nil {
		p.allFailed(checks, err.Error(), r.output())
		return
	}
	var group sync.WaitGroup
	for _, c := range checks {
		run := func() {
			took, err := attempt(ctx, r, c.name, c.run)
			if err != nil {
				p.record(Result{Name: c.name, Status: Failed, Reason: err.Error(), Output: r.output(), Took: took})
				return
			}
			p.record(Result{Name: c.name, Status: Passed, Took: took})
		}
		if s.ordered {
			run()
		} else {
			group.Go(run)
		}
	}
	group.Wait()
}

func (p *play) allFailed(checks []check, reason, output string) {
	for _, c := range checks {
		p.record(Result{Name: c.name, Status: Failed, Reason: reason, Output: output})
	}
}

// trial is one check, or one act, while it runs.
type trial struct {
	*rig
	ctx  context.Context
	name string
	err  error
}

// attempt runs f, which ends early by trial.failf.
func attempt(ctx context.Context, r *rig, name string, f func(*trial)) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	t := &trial{rig: r, ctx: ctx, name: name, err: errors.New("the check ended early")}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(t)
		t.err = nil // not reached after failf
	}()
	<-done
	return time.Since(began), t.err
}

// failf ends the check.
func (t *trial) failf(format string, args ...any) {
	t.err = fmt.Errorf(format, args...)
	runtime.Goexit()
}

func (t *trial) must(err error, doing string) {
	if err != nil {
		t.failf("%s: %w", doing, err)
	}
}

// poll is how often conditions are looked at.
const poll = 10 * time.Millisecond

// until waits for a condition; false means that it did not come about in time.
func (t *trial) until(within time.Duration, condition func() bool) bool {
	deadline := time.Now().Add(within)
	for !condition() {
		if time.Now().After(deadline) || t.ctx.Err() != nil {
			return condition()
		}
		pause(t.ctx, poll)
	}
	return true
}

// eventually fails the check when the condition does not come about in time.
func (t *trial) eventually(within time.Duration, condition func() bool, format string, args ...any) {
	if !t.until(within, condition) {
		t.failf("%s (waited %s)", fmt.Sprintf(format, args...), within)
	}
}

// never fails the check when the condition comes about within that time.
func (t *trial) never(within time.Duration, condition func() bool, format string, args ...any) {
	if t.until(within, condition) {
		t.failf(format, args...)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
