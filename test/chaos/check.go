//go:build unix

package chaos

import (
	"fmt"
	"strings"
	"time"

	"github.com/callfan/callfan/test/chaos/effects"
)

// examples bounds how many keys of each finding are shown.
const examples = 8

// check compares what was asked, what was accepted and what was done.
func check(r *Report, w *workload, a *api, o *outcomes, effectsDir string, end time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Errors = map[string]int{}
	h := history{acted: map[string]bool{}, ended: map[string]bool{}}
	r.EffectsDoubledBy = map[effects.Class]int{}
	for _, f := range effects.Functions() {
		lines, err := effects.Read(effects.File(effectsDir, f.Name))
		if err != nil {
			return err
		}
		r.countEffects(f, lines, h)
		for _, l := range lines {
			if l.Event == effects.Start && l.Uncertain && o.startedAfter(l.Key, time.UnixMilli(l.At)) {
				r.RunAgain++
				r.example("run again %s %s (%s) at %s, after its success was published", f.Name, l.Key, l.Number, time.UnixMilli(l.At).Format("15:04:05.000"))
			}
		}
	}
	for _, p := range w.planned {
		r.Calls++
		r.MaxStall = max(r.MaxStall, p.stood(end).Seconds())
		switch {
		case p.listed.IsZero():
			continue // a later round of a turn that stands still: the call was never asked for
		case p.answered.IsZero():
			r.Lost++
			if o.firstSucceeded(p.key) && !o.kept(p.key) {
				r.Forgotten++
			}
			r.example("lost %s %s (%s), listed for %s", p.function.Name, p.key, p.number, p.stood(end).Round(time.Second))
			continue
		}
		r.Answered++
		if p.seen > 1 {
			r.Repeated++ // the workload's own message was taken twice
		}
		if p.success {
			r.Succeeded++
			if p.text != fmt.Sprintf("%q", "done "+p.number) {
				r.Wrong++
				r.example("wrong %s %s: %s", p.function.Name, p.key, p.text)
			}
			if p.function.Class != effects.None && !h.acted[p.number] {
				r.Wrong++
				r.example("success without its effect: %s %s", p.function.Name, p.key)
			}
		} else {
			reason := reasonOf(p.text)
			r.Errors[reason]++
			switch {
			case reason == deadline && h.ended[p.number]:
				r.Lost++
				r.LostResults++
				r.example("lost result of %s %s (%s): a run ended, and the model was told %s", p.function.Name, p.key, p.number, p.text)
			case o.firstSucceeded(p.key):
				r.Overtaken++
				r.example("overtaken result of %s %s (%s): a success was published, and the model was told %s", p.function.Name, p.key, p.number, p.text)
			}
			if !strings.Contains(p.text, "unknown") && h.acted[p.number] {
				r.Contradicted++
				r.example("error in spite of the effect: %s %s: %s", p.function.Name, p.key, p.text)
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, s := range a.results {
		times := 0
		for _, v := range s.distinct {
			times += v.accepted
		}
		r.Resubmitted += max(0, times-1)
		if len(s.distinct) < 2 {
			continue
		}
		r.Doubled++
		var all []string
		for _, v := range s.distinct {
			all = append(all, fmt.Sprintf("%s (from %s, accepted %d, refused %d, unanswered %d)",
				v.text, v.first.Format("15:04:05.000"), v.accepted, v.refused, v.lost))
		}
		r.example("doubled %s: %s", key, strings.Join(all, " and "))
	}
	shared := 0
	for _, who := range a.asked {
		if who.changes > 1 { // one is a change of owner
			shared++
		}
	}
	r.Shared = float64(shared) / float64(max(1, len(a.asked)))
	stats := a.sim.Stats()
	r.Conflicts, r.Replays, r.Batches = stats.Conflicts, stats.IdempotentReplays, stats.Batches
	for kind, n := range stats.FaultsFired {
		r.FaultsBy["api_"+string(kind)] = int(n)
		r.Faults += int(n)
	}
	return nil
}

// history is what executors did, by the workload's number of the call.
type history struct{ acted, ended map[string]bool }

// countEffects counts the effects of a function, and those that happened more than once.
func (r *Report) countEffects(f effects.Function, lines []effects.Line, h history) {
	byCall, keys := map[string][]effects.Line{}, map[string]string{}
	for _, l := range lines {
		switch l.Event {
		case effects.Start:
			r.Runs++
			if earlier, ok := keys[l.Key]; ok && earlier != l.IdempotencyKey {
				r.Wrong++
				r.example("two idempotency keys for %s", l.Key)
			}
			keys[l.Key] = l.IdempotencyKey
		case effects.Done:
			r.Effects++
			h.acted[l.Number] = true
			byCall[l.Key] = append(byCall[l.Key], l)
		case effects.Barrier:
			r.Verified++
		case effects.End:
			h.ended[l.Number] = true
		}
	}
	for key, list := range byCall {
		if len(list) < 2 {
			continue
		}
		r.EffectsDoubled++
		r.EffectsDoubledBy[f.Class]++
		var all []string
		for _, l := range list {
			all = append(all, fmt.Sprintf("%s attempt %d by %d", time.UnixMilli(l.At).Format("15:04:05.000"), l.Attempt, l.PID))
		}
		r.example("effect of %s twice: %s: %s", f.Name, key, strings.Join(all, "; "))
	}
}

// stood is how long the call was listed without an answer.
func (p *plannedCall) stood(end time.Time) time.Duration {
	switch {
	case p.listed.IsZero():
		return 0
	case p.answered.IsZero():
		return end.Sub(p.listed)
	default:
		return p.answered.Sub(p.listed)
	}
}

// reasonOf sorts the errors that the model got by their texts.
func reasonOf(text string) string {
	for _, r := range []struct{ part, reason string }{
		{"technical reason", "gave_up"},
		{"outcome of this call is unknown", "unknown_outcome"}, // also of calls that crashed too often
		{"is unknown: ", "unknown_outcome"},
		{"function crashed", "crashed"},
		{"no executor is available", "no_executor"},
		{"must not", barred},
		{"timed out after", "timeout"},
		{"deadline", deadline},
		{"arrived in time", deadline},
		{"stops", "stopped"},
		{"an operator", "operator"},
	} {
		if strings.Contains(text, r.part) {
			return r.reason
		}
	}
	return strings.Trim(text[:min(len(text), 60)], `"`)
}

const (
	// deadline: nobody finished the call in time.
	deadline = "deadline"
	// barred: a frozen run woke after a verify handler had said that it did not act.
	barred = "barred"
)
