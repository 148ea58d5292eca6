//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/callfan/callfan/test/chaos/effects"
)

// Report is what a run found.
type Report struct {
	// Pass: nothing lost, doubled or wrong.
	Pass bool `json:"pass"`
	// Bug is the planted fault, if any, and Caught says whether the run shows what it does.
	Bug    string `json:"bug,omitempty"`
	Caught bool   `json:"caught,omitempty"`
	Seed   uint64 `json:"seed"`
	// Seconds is how long calls were asked for, SettleSeconds how long the end of all turns took after that.
	Seconds       float64 `json:"duration_s"`
	SettleSeconds float64 `json:"settle_s"`
	// Calls were asked for; Answered of them have a result that the API accepted and applied, Succeeded a success.
	Calls     int `json:"calls"`
	Answered  int `json:"answered"`
	Succeeded int `json:"succeeded"`
	// Lost calls were listed and have no result, or were answered with a deadline although a handler had ended.
	Lost int `json:"lost"`
	// Forgotten calls have no answer, though a success was published and its message is gone.
	Forgotten int `json:"forgotten"`
	// LostResults are those of them of the second kind.
	LostResults int `json:"lost_results"`
	// Doubled counts calls for which two different results were submitted.
	Doubled int `json:"doubled"`
	// EffectsDoubled counts calls whose effect happened more than once, EffectsDoubledBy by class.
	EffectsDoubled   int                   `json:"effects_doubled"`
	EffectsDoubledBy map[effects.Class]int `json:"effects_doubled_by_class"`
	// Wrong counts successes with another call's output or without their effect.
	Wrong int `json:"wrong"`
	// Contradicted counts errors other than "the outcome is unknown" for calls whose effect happened. It is not part of
	// Pass: after a freeze, the truth may come second.
	Contradicted int `json:"contradicted"`
	// Overtaken counts calls that were answered with an error although a success had been published before. When the stream
	// stored it, a look-up finds it.
	Overtaken int `json:"overtaken"`
	// Faults is how often something was made to fail, FaultsBy by kind.
	Faults   int            `json:"faults"`
	FaultsBy map[string]int `json:"faults_by_kind"`
	// MaxStall is the longest time that a call was listed without a result, in seconds.
	MaxStall float64 `json:"max_stall_s"`
	// Exits are how often processes ended by themselves, by name. They are started again after a second.
	Exits map[string]int `json:"exits,omitempty"`
	// Runs are entries of handlers, Effects side effects.
	Runs    int `json:"runs"`
	Effects int `json:"effects"`
	// RunAgain are entries of calls known to be uncertain, after a success of the same call was published. Who is cut off may be told too late, but when
	// that is the rule, outcomes get lost.
	RunAgain int `json:"run_again"`
	// Verified counts the verify handlers' answers "not done", after which a call was run again.
	Verified int `json:"verified_not_done"`
	// Resubmitted counts identical results that were accepted again; Replays POSTs that the API knew by their key.
	Resubmitted int `json:"resubmitted"`
	// Shared is the share of the 2 s windows of a session with requests in which several replicas made some. A change
	// of owner makes one; replicas that do not keep to their partitions make many.
	Shared    float64 `json:"shared_windows"`
	Replays   int64   `json:"replays"`
	Conflicts int64   `json:"conflicts"`
	Batches   int64   `json:"batches"`
	Repeated  int     `json:"repeated_messages"`
	// Errors are the failures that the model was told, by reason.
	Errors map[string]int `json:"errors"`
	// Decisions are what the operator decided about parked calls, by kind.
	Decisions map[string]int `json:"decisions"`
	// LeftCalls and LeftResults are messages that were still in their streams a while after the end; Unsettled calls
	// of which Redis says that they are not over.
	LeftCalls   uint64 `json:"left_calls"`
	LeftResults uint64 `json:"left_results"`
	Unsettled   int    `json:"unsettled"`
	// Dead are dead letters, LateResults those of them that keep a result that came after another.
	Dead        int            `json:"dead_letters"`
	DeadBy      map[string]int `json:"dead_letters_by_reason,omitempty"`
	LateResults int            `json:"late_results"`

	findings []string
	left     map[string]int
}

// example keeps the first findings of each kind, to be looked up in the logs.
func (r *Report) example(format string, args ...any) {
	if r.left == nil {
		r.left = map[string]int{}
	}
	if r.left[format]++; r.left[format] <= examples {
		r.findings = append(r.findings, fmt.Sprintf(format, args...))
	}
}

// judge decides. After a fault, results may be submitted again and sessions change their owner, but when that is the rule,
// several replicas own them.
func (r *Report) judge() {
	r.Pass = r.Lost == 0 && r.Doubled == 0 && r.EffectsDoubled == 0 && r.Wrong == 0 && r.Answered == r.Calls &&
		float64(r.Resubmitted) <= mostResubmitted*float64(r.Calls) && r.Shared <= mostShared &&
		float64(r.RunAgain) <= mostRunAgain*float64(r.Calls) && float64(r.Overtaken) <= mostOvertaken*float64(r.Calls)
	if bug, planted := Bugs[r.Bug]; planted {
		r.Caught = !r.Pass && bug.caught(r)
	}
}

const (
	// mostResubmitted is the share of the calls whose result may have been accepted more than once.
	mostResubmitted = 0.25
	// mostRunAgain is the share of the calls that may have been entered again after their success was published.
	mostRunAgain = 0.01
	// mostOvertaken is the share of the calls that may have been told an error after a success was seen. It is not 0 because
	// whoever listens sees a success that the stream's leader, cut off or frozen, does not store.
	mostOvertaken = 0.001
	// mostShared is the share of windows in which several replicas may have served a session.
	mostShared = 0.1
)

// Write writes the table, the findings, and the JSON line last.
func (r *Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "\nfaults\n%s", describe(r.FaultsBy))
	fmt.Fprintf(w, "calls %d in %.0f s (seed %d): answered %d, succeeded %d, lost %d, doubled %d, wrong %d, contradicted %d, overtaken %d\n",
		r.Calls, r.Seconds, r.Seed, r.Answered, r.Succeeded, r.Lost, r.Doubled, r.Wrong, r.Contradicted, r.Overtaken)
	fmt.Fprintf(w, "effects %d in %d runs: more than once %d", r.Effects, r.Runs, r.EffectsDoubled)
	for _, c := range []effects.Class{effects.Keyed, effects.Verified, effects.Fail, effects.Parked} {
		fmt.Fprintf(w, ", %s %d", c, r.EffectsDoubledBy[c])
	}
	fmt.Fprintf(w, "\nerrors told to the model:")
	for _, reason := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(w, " %s %d", reason, r.Errors[reason])
	}
	fmt.Fprintf(w, "\nan operator's decisions:")
	for _, kind := range slices.Sorted(maps.Keys(r.Decisions)) {
		fmt.Fprintf(w, " %s %d", kind, r.Decisions[kind])
	}
	fmt.Fprintf(w, "\nsubmissions: %d batches, %d identical results again, %d replays by key, %d conflicts, %.0f %% windows shared\n",
		r.Batches, r.Resubmitted, r.Replays, r.Conflicts, 100*r.Shared)
	fmt.Fprintf(w, "longest wait of a call %.1f s; all turns ended %.1f s after the last fault\n", r.MaxStall, r.SettleSeconds)
	fmt.Fprintf(w, "left: %d calls and %d results in the streams, %d calls unsettled in Redis, %d dead letters (late results: %d)\n",
		r.LeftCalls, r.LeftResults, r.Unsettled, r.Dead, r.LateResults)
	for _, name := range slices.Sorted(maps.Keys(r.Exits)) {
		fmt.Fprintf(w, "! %s ended by itself, %d times; its log says why\n", name, r.Exits[name])
	}
	for _, f := range r.findings {
		fmt.Fprintln(w, "!", f)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}
