package property_test

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/callfan/callfan/pkg/call"
)

// The functions of the model, one of each class.
const (
	reads  = "reads"  // no effects
	keyed  = "keyed"  // idempotent
	pays   = "pays"   // side effects, nobody can verify
	books  = "books"  // side effects, with a verify handler
	later  = "later"  // no effects, registered in the middle of the script
	parks  = "parks"  // side effects, and an operator decides
	weighs = "weighs" // ... when the verify handler cannot tell
)

// declared are the registered functions.
func declared() map[string]call.Function {
	policy := func(p call.Policy) call.Policy {
		p.Timeout, p.QueueTimeout = call.Duration(time.Second), call.Duration(time.Second)
		p.TotalDeadline = call.Duration(15 * time.Second)
		p.Backoff = call.Backoff{Initial: call.Duration(20 * time.Millisecond), Max: call.Duration(60 * time.Millisecond)}
		return p
	}
	out := map[string]call.Function{}
	for name, p := range map[string]call.Policy{
		reads:  {Effects: call.EffectsNone},
		keyed:  {Effects: call.EffectsIdempotent},
		pays:   {},
		books:  {Attempts: 3},
		later:  {Effects: call.EffectsNone},
		parks:  {OnUncertain: call.UncertainPark},
		weighs: {OnUncertain: call.UncertainPark, Attempts: 3},
	} {
		out[name] = call.Function{Name: name, Verifies: name == books || name == weighs, Policy: policy(p)}
	}
	return out
}

// fate is what becomes of one delivery of a call.
type fate string

const (
	finishes      fate = "finishes"      // runs, reports success, acks
	fails         fate = "fails"         // an error for the model
	asksRetry     fate = "asks_retry"    // a technical failure, before any effect
	vanishes      fate = "vanishes"      // its executor dies before the handler is entered
	diesEarly     fate = "dies_early"    // ... in the handler, before the effect
	diesLate      fate = "dies_late"     // ... after the effect, before the outcome
	diesReported  fate = "dies_reported" // ... after the outcome, before the ack
	releases      fate = "releases"      // given back unstarted
	stallsLate    fate = "stalls_late"   // stands still after the effect, longer than the lease
	stallsEarly   fate = "stalls_early"  // ... in the handler, before the effect
	defers        fate = "defers"        // posts the result later
	repeats       fate = "repeats"       // reports the outcome twice
	isForged      fate = "is_forged"     // somebody answers with a wrong nonce, too
	cannotVerify  fate = "cannot_verify" // the verify handler cannot tell; else as finishes
	fatesInScript      = 3
)

var fates = []fate{
	finishes, finishes, fails, asksRetry, asksRetry, vanishes, diesEarly, diesLate, diesLate, diesReported, releases,
	stallsLate, stallsLate, stallsEarly, defers, repeats, isForged, cannotVerify,
}

// plan is a call that the API lists, and what becomes of its deliveries, one after the
// other. Deliveries after these finish.
type plan struct {
	function string
	fates    []fate
	// work is how long its handler, a stall or a deferral takes.
	work time.Duration
}

// op is what one step of a script does.
type op string

const (
	opList      op = "list"      // the API lists calls of a new turn
	opKill      op = "kill"      // a dispatcher dies
	opStop      op = "stop"      // ... stops in order
	opStart     op = "start"     // ... is started, if it does not run
	opFreeze    op = "freeze"    // ... gets no answer for a while
	opCancel    op = "cancel"    // the latest turn is cancelled
	opDelete    op = "delete"    // the session is deleted
	opAPI       op = "api"       // the next submission meets a fault
	opPublish   op = "publish"   // the next publication does
	opOutcomes  op = "outcomes"  // the next outcomes do
	opAway      op = "away"      // no executor is there for a while
	opDuplicate op = "duplicate" // every call that is held is delivered once more
	opRestart   op = "restart"   // the queue forgets the ids of what it does not store
	opFlush     op = "flush"     // the store loses everything
	opDecide    op = "decide"    // an operator decides about the calls that are open
	opRegister  op = "register"  // the last function is registered
	opNothing   op = "nothing"   // time passes
)

var ops = []op{
	opList, opList, opKill, opKill, opStop, opStart, opStart, opFreeze, opCancel, opDelete, opAPI, opAPI, opPublish,
	opOutcomes, opAway, opDuplicate, opRestart, opFlush, opRegister, opDecide, opNothing,
}

// fault is what goes wrong with a request.
type fault string

const (
	refused  fault = "refused"  // nothing happens
	unheard  fault = "unheard"  // done, and the answer is lost
	lost     fault = "lost"     // accepted, and not done
	lagging  fault = "lagging"  // accepted, done later
	dropped  fault = "dropped"  // a delivery does not arrive
	repeated fault = "repeated" // a delivery arrives twice

	// What an operator does.
	runsAgain fault = "rerun"  // has parked calls run again that had no effect, and answers the others
	answers   fault = "answer" // answers every call that has no result
)

// step is one line of a script.
type step struct {
	after   time.Duration
	op      op
	session int
	replica int
	fault   fault
	lasts   time.Duration
	calls   []plan
}

func (s step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "+%-6v %-9s", s.after, s.op)
	switch s.op {
	case opList:
		fmt.Fprintf(&b, " session %d:", s.session)
		for _, c := range s.calls {
			fmt.Fprintf(&b, " %s%v/%v", c.function, c.fates, c.work)
		}
	case opCancel, opDelete:
		fmt.Fprintf(&b, " session %d", s.session)
	case opKill, opStop, opStart:
		fmt.Fprintf(&b, " dispatcher %d", s.replica)
	case opFreeze:
		fmt.Fprintf(&b, " dispatcher %d for %v", s.replica, s.lasts)
	case opAPI, opPublish, opOutcomes, opDecide:
		fmt.Fprintf(&b, " %s", s.fault)
	case opAway:
		fmt.Fprintf(&b, " for %v", s.lasts)
	}
	return b.String()
}

type script []step

func (s script) String() string {
	var b strings.Builder
	for _, st := range s {
		b.WriteString("\n    " + st.String())
	}
	return b.String()
}

func millis(from, to int) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(from, to), func(n int) time.Duration { return time.Duration(n) * time.Millisecond })
}

func plans() *rapid.Generator[[]plan] {
	one := rapid.Custom(func(t *rapid.T) plan {
		return plan{
			function: rapid.SampledFrom([]string{reads, keyed, pays, pays, books, books, later, parks, parks, weighs, weighs}).Draw(t, "function"),
			fates:    rapid.SliceOfN(rapid.SampledFrom(fates), 0, fatesInScript).Draw(t, "fates"),
			work:     millis(0, 250).Draw(t, "work"),
		}
	})
	return rapid.SliceOfN(one, 1, 4)
}

func scripts() *rapid.Generator[script] {
	list := func(t *rapid.T, s step) step {
		s.op, s.session, s.calls = opList, rapid.IntRange(0, sessionCount-1).Draw(t, "session"), plans().Draw(t, "calls")
		return s
	}
	more := rapid.Custom(func(t *rapid.T) step {
		s := step{after: millis(0, 150).Draw(t, "after"), op: rapid.SampledFrom(ops).Draw(t, "op")}
		switch s.op {
		case opList:
			return list(t, s)
		case opCancel, opDelete:
			s.session = rapid.IntRange(0, sessionCount-1).Draw(t, "session")
		case opKill, opStop, opStart:
			s.replica = rapid.IntRange(0, replicaCount-1).Draw(t, "dispatcher")
		case opFreeze:
			s.replica = rapid.IntRange(0, replicaCount-1).Draw(t, "dispatcher")
			s.lasts = millis(100, 900).Draw(t, "lasts")
		case opAPI:
			s.fault = rapid.SampledFrom([]fault{refused, unheard, lost, lagging}).Draw(t, "fault")
		case opPublish:
			s.fault = rapid.SampledFrom([]fault{refused, unheard}).Draw(t, "fault")
		case opOutcomes:
			s.fault = rapid.SampledFrom([]fault{dropped, repeated}).Draw(t, "fault")
		case opDecide:
			s.fault = rapid.SampledFrom([]fault{runsAgain, answers}).Draw(t, "decision")
		case opAway:
			s.lasts = millis(50, 1200).Draw(t, "lasts")
		}
		return s
	})
	return rapid.Custom(func(t *rapid.T) script {
		return append(script{list(t, step{})}, rapid.SliceOfN(more, 1, 12).Draw(t, "steps")...)
	})
}
