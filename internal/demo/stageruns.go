package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/internal/runs"
)

// runRequest is a run that asks what a session is asked. Its bounds let it play a load's script to the end.
func (o Options) runRequest(question string, functions []string) (json.RawMessage, error) {
	return json.Marshal(map[string]any{
		"model": model, "input": question, "tools": functions,
		"bounds": map[string]any{
			"rounds": max(10, o.Rounds+1), "calls": max(100, o.Calls*o.Rounds), "repeats": max(3, o.Rounds), "time": "24h",
		},
	})
}

// startRuns starts a run for each conversation.
func (s *stage) startRuns(ctx context.Context, list []conversation) error {
	registered, err := s.functions(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(registered))
	for i, f := range registered {
		names[i] = f.Name
	}
	s.runs = make([]runs.Run, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i, c := range list {
		group.Go(func() error {
			body, err := s.runRequest(c.question, names)
			if err != nil {
				return err
			}
			if s.runs[i], err = s.app.StartRun(ctx, body, ""); err != nil {
				return fmt.Errorf("the run was not started: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// lookAtRuns counts the runs that are over, and the rounds of those that it looked at. Runs end in about the order in
// which they were started, so it looks no further than to the first one that is on its way, unless it is to look at all.
func (s *stage) lookAtRuns(ctx context.Context, all bool) (ended, rounds int, err error) {
	for i, r := range s.runs {
		if !r.Status.Final() {
			if s.runs[i], err = s.app.ShowRun(ctx, r.ID); err != nil {
				return ended, rounds, err
			}
		}
		rounds += len(s.runs[i].Rounds)
		switch {
		case s.runs[i].Status.Final():
			ended++
		case !all:
			return ended, rounds, nil
		}
	}
	return ended, rounds, nil
}

// runCalls is how many calls the runs have.
func (s *stage) runCalls() (calls int) {
	for _, r := range s.runs {
		for _, round := range r.Rounds {
			calls += len(round.Calls)
		}
	}
	return calls
}

// runsReport counts what became of the runs, with the outputs that the simulator received.
func (s *stage) runsReport(report *Report) {
	sent := map[string]bool{}
	for _, o := range s.sim.ReceivedOutputs() {
		sent[o.CallID] = len(o.Contents) > 0
	}
	counts := &RunsReport{Runs: len(s.runs), RunCalls: s.runCalls()}
	for _, r := range s.runs {
		if r.Status == runs.Completed {
			counts.RunsCompleted++
		}
		counts.Rounds += len(r.Rounds)
		for _, round := range r.Rounds {
			for _, c := range round.Calls {
				if sent[c.ID] {
					counts.RunOutputs++
				}
			}
		}
	}
	report.RunsReport = counts
	report.Lost += int64(counts.RunCalls - counts.RunOutputs)
	report.Doubled += s.sim.Stats().OutputsContradicted
}

// sayRuns prints the answers of the runs, and the error is about those that have none.
func (s *stage) sayRuns(list []conversation) error {
	var errs []error
	for i, r := range s.runs {
		if r.Status != runs.Completed {
			errs = append(errs, fmt.Errorf("the run %s is %s", r.ID, strings.Join(slices.DeleteFunc([]string{string(r.Status), r.Reason, r.Error}, func(s string) bool { return s == "" }), ": ")))
			continue
		}
		if s.Sessions == 0 {
			s.say("\nuser:  %s\nrun:   %s\n", list[i].shown, r.Text)
		}
	}
	return errors.Join(errs...)
}
