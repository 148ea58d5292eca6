package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/callfan/callfan/internal/simulator"
)

// Report is what happened, by the simulator's own counts and, for executed, by the
// executor's.
type Report struct {
	Sessions int64 `json:"sessions"`
	// Turns counts those that were completed.
	Turns int64 `json:"turns"`
	Calls int64 `json:"calls"`
	// Executed counts the times that handlers ran; with Options.Languages, the results that came.
	Executed int64 `json:"executed"`
	// Submitted counts the calls whose result the API accepted.
	Submitted int64 `json:"submitted"`
	// Lost counts the calls without an accepted result.
	Lost int64 `json:"lost"`
	// Doubled counts the runs of a call beyond its first, and the results that came
	// again for a call that had one.
	Doubled  int64 `json:"doubled"`
	Batches  int64 `json:"batches"`
	MaxBatch int   `json:"max_batch"`
	// Languages counts the languages whose executor answered, with Options.Languages.
	Languages int `json:"languages,omitempty"`
	// WallMS is the time from the first session's creation to the last answer.
	WallMS int64 `json:"wall_ms"`
	// RunsReport is set with Options.Responses. Executed, Lost and Doubled then cover sessions
	// and runs.
	*RunsReport
}

// RunsReport counts runs of the Responses API.
type RunsReport struct {
	Runs          int `json:"runs"`
	RunsCompleted int `json:"runs_completed"`
	// Rounds counts the responses of the runs.
	Rounds   int `json:"rounds"`
	RunCalls int `json:"run_calls"`
	// RunOutputs counts the calls of runs whose output the API received.
	RunOutputs int `json:"run_outputs"`
}

func newReport(stats simulator.Stats, worker WorkerReport, wall time.Duration) Report {
	return Report{
		Sessions: stats.Sessions, Turns: stats.TurnsCompleted, Calls: stats.Calls,
		Executed: int64(worker.Executed), Submitted: stats.ResultsAccepted,
		Lost:    stats.Calls - stats.ResultsAccepted,
		Doubled: stats.DuplicateSubmissions + stats.Conflicts + int64(worker.Executed-worker.Calls),
		Batches: stats.Batches, MaxBatch: stats.MaxBatch, WallMS: wall.Milliseconds(),
	}
}

// Err is an error when a call was lost or anything happened twice.
func (r Report) Err() error {
	if r.Lost == 0 && r.Doubled == 0 {
		return nil
	}
	return fmt.Errorf("%d calls were lost and %d doubled", r.Lost, r.Doubled)
}

func (r Report) writeJSON(out io.Writer) error { return json.NewEncoder(out).Encode(r) }

func (r Report) writeText(out io.Writer) {
	if r.RunsReport != nil {
		fmt.Fprintf(out, "\n%d sessions, %d turns, %d calls: %d submitted in %d batches (largest %d)\n"+
			"%d runs, %d completed in %d rounds, %d calls: %d outputs sent\n"+
			"%d executed, %d lost, %d doubled, in %d ms\n",
			r.Sessions, r.Turns, r.Calls, r.Submitted, r.Batches, r.MaxBatch,
			r.Runs, r.RunsCompleted, r.Rounds, r.RunCalls, r.RunOutputs,
			r.Executed, r.Lost, r.Doubled, r.WallMS)
		return
	}
	fmt.Fprintf(out, "\n%d sessions, %d turns, %d calls: %d executed, %d submitted in %d batches (largest %d), %d lost, %d doubled, in %d ms\n",
		r.Sessions, r.Turns, r.Calls, r.Executed, r.Submitted, r.Batches, r.MaxBatch, r.Lost, r.Doubled, r.WallMS)
}
