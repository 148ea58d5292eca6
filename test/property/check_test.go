package property_test

import (
	"fmt"
	"slices"
	"sync"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// entry is why a handler was entered.
type entry string

const (
	fresh    entry = "fresh"    // delivered for the first time, not marked uncertain
	rerun    entry = "rerun"    // may have run, and may be run again
	verified entry = "verified" // may have run, and the verify handler said "not done"
)

// checks is what was seen of every call, and what of it must not be.
type checks struct {
	w *world

	// flushing is held while the store loses its data, and shared by who asks the store
	// and notes its answer.
	flushing sync.RWMutex

	mu         sync.Mutex
	flushes    int
	violations []string
	lives      map[call.Key]*life
}

// life is what was seen of one call.
type life struct {
	runs    []*run
	effects int
	// contents are the different results that were submitted.
	contents []string
	// savedAs and saved are the outcome that the store saved, and its content if known.
	savedAs, saved string
	// over: a result was saved, or the call ended.
	over bool
	// retried is the last attempt that was recorded as failed.
	retried int
	// parked: nothing but the store knows that an operator is waited for.
	parked bool
	// flushes is how often the store had lost its data when this was noted.
	flushes int
}

// run is one entry of the handler.
type run struct {
	how entry
	// harmless: it ended before any effect, as it said by asking for a retry, or as the
	// verify handler or an operator said.
	harmless bool
}

func (c *checks) life(key call.Key) *life {
	if c.lives[key] == nil {
		c.lives[key] = &life{}
	}
	return c.lives[key]
}

// violate notes a broken rule; the caller holds the lock.
func (c *checks) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.w.trace("VIOLATION: %s", text)
	c.violations = append(c.violations, text)
}

// entered notes that a handler is entered and gives the run's number, from 1.
func (c *checks) entered(d call.Dispatch, how entry) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.life(d.Key)
	doubtful := slices.ContainsFunc(l.runs, func(r *run) bool { return !r.harmless })
	switch d.Function {
	case pays:
		if doubtful {
			c.violate("%s has side effects and no verify handler, and is run again (%s)", name(d), how)
		}
	case parks:
		if doubtful {
			c.violate("%s has side effects and is run again without an operator's decision (%s)", name(d), how)
		}
	case books, weighs:
		if doubtful {
			c.violate("%s has side effects and is run again without being verified (%s)", name(d), how)
		}
	}
	l.runs = append(l.runs, &run{how: how})
	c.w.trace("%s entered, run %d, %s", name(d), len(l.runs), how)
	return len(l.runs)
}

// harmless notes that run n ended before any effect.
func (c *checks) harmless(d call.Dispatch, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life(d.Key).runs[n-1].harmless = true
}

// notDone notes that the verify handler says so of all runs until now.
func (c *checks) notDone(key call.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.life(key).runs {
		r.harmless = true
	}
}

// vouched notes that an operator has the call run again, and gives what takes it back.
func (c *checks) vouched(key call.Key) (takeBack func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var runs []*run
	for _, r := range c.life(key).runs {
		if !r.harmless {
			r.harmless = true
			runs = append(runs, r)
		}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range runs {
			r.harmless = false
		}
	}
}

// effect notes that run n took effect.
func (c *checks) effect(d call.Dispatch, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.life(d.Key)
	l.effects++
	c.w.trace("%s took effect in run %d", name(d), n)
	if l.effects > 1 && d.Function != reads && d.Function != keyed && d.Function != later {
		c.violate("%s took effect %d times", name(d), l.effects)
	}
}

func (c *checks) effects(key call.Key) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life(key).effects
}

// submitted notes what is sent to the API.
func (c *checks) submitted(b call.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range b.Answers {
		l, text := c.life(a.Key), content(a.Key, a.Result)
		c.w.trace("%s submitted", short(a.Key))
		if !slices.Contains(l.contents, text) {
			l.contents = append(l.contents, text)
		}
		if len(l.contents) > 1 {
			c.violate("%s: different results are submitted: %s", short(a.Key), l.contents)
		}
		if l.saved != "" && l.saved != text {
			c.violate("%s: submitted is not what is saved: %s, saved %s", short(a.Key), text, l.saved)
		}
	}
}

// completed notes that the store says that it saved an outcome; rec is the record
// that it shows afterwards.
func (c *checks) completed(key call.Key, outcomeID string, rec results.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.life(key)
	l.over = true
	if l.savedAs == "" {
		l.savedAs = outcomeID
		c.w.trace("%s saved %s", short(key), outcomeID)
	}
	if l.savedAs != outcomeID {
		c.violate("%s: the saved result of %s is replaced by that of %s", short(key), l.savedAs, outcomeID)
	}
	c.compare(l, rec)
}

// shown notes a record that the store shows.
func (c *checks) shown(rec results.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compare(c.life(rec.Key), rec)
}

func (c *checks) compare(l *life, rec results.Record) {
	if rec.Result == nil {
		return
	}
	text := content(rec.Key, *rec.Result)
	if l.saved == "" {
		l.saved = text
	}
	if l.saved != text {
		c.violate("%s: the saved result %s became %s", short(rec.Key), l.saved, text)
	}
}

// moved notes a move that was made.
func (c *checks) moved(m results.Move) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.life(m.Key)
	if m.To.Final() {
		l.over = true
	}
	l.parked = m.To == call.Parked
	if m.To == call.Retrying {
		l.retried = max(l.retried, m.Attempt)
	}
}

// known is what a lookup that begins now has to know.
func (c *checks) known(key call.Key) life {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.life(key)
}

// told checks the answer of a lookup.
func (c *checks) told(d call.Dispatch, known life, standing call.Standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known.flushes != c.life(d.Key).flushes {
		return // the store lost it meanwhile
	}
	over := known.over || known.retried >= d.Attempt
	if over && (standing == call.StandingPending || standing == call.StandingUnknown) {
		c.violate("%s is over, and a lookup says %s", name(d), standing)
	}
}

// transition checks a step that a dispatcher reports.
func (c *checks) transition(t dispatcher.Transition) {
	c.w.trace("%s moves from %q to %q %s", short(t.Key), t.From, t.To, t.Reason)
	if slices.Contains(call.Transitions()[t.From], t.To) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violate("%s moved from %q to %q, which is not a transition", short(t.Key), t.From, t.To)
}

// forget drops what a store without its data does not know any more.
func (c *checks) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushes++
	for _, l := range c.lives {
		l.flushes = c.flushes
		l.parked = false
		l.contents = nil // the API took none of them, or it refuses another one
		l.savedAs, l.saved, l.over, l.retried = "", "", false, 0
	}
}

// require notes that something of the world itself does not work.
func (c *checks) require(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violate("the world does not work: %v", err)
}

func (c *checks) found() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.violations)
}

func content(key call.Key, r call.Result) string {
	return string(call.Answer{Key: key, Result: r}.AppendEvent(nil))
}

func short(key call.Key) string { return key.Session + "/" + key.Turn + "/" + key.Call }

func name(d call.Dispatch) string {
	return fmt.Sprintf("%s %s attempt %d.%d", d.Function, short(d.Key), d.Attempt, d.Handover)
}
