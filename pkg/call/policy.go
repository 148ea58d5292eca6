package call

import (
	"errors"
	"fmt"
	"time"
)

// Effects says what running a function twice does.
type Effects string

// The classes of effects, from safest to run again to least.
const (
	// EffectsNone: the function only reads.
	EffectsNone Effects = "none"
	// EffectsIdempotent: running it again with the same idempotency key changes nothing more.
	EffectsIdempotent Effects = "idempotent"
	// EffectsSideEffects: running it again may do the thing twice. The default.
	EffectsSideEffects Effects = "side_effects"
)

// OnUncertain says what happens to a call that may have run without its outcome
// being known.
type OnUncertain string

// The choices for uncertain calls.
const (
	// UncertainRerun runs the call again.
	UncertainRerun OnUncertain = "rerun"
	// UncertainVerify asks the executor's verify handler, and runs the call again only
	// when that says it did not take effect.
	UncertainVerify OnUncertain = "verify"
	// UncertainFail tells the model that the outcome is unknown.
	UncertainFail OnUncertain = "fail"
	// UncertainPark asks the verify handler, if there is one, and leaves what it cannot
	// tell to an operator. The model waits meanwhile.
	UncertainPark OnUncertain = "park"
)

// Policy is how a function wants to be run. The zero value is the safe default.
type Policy struct {
	// Timeout bounds one run of the handler. Defaults to 30 s.
	Timeout Duration `json:"timeout,omitempty"`
	// QueueTimeout bounds the wait for an executor. Defaults to 60 s.
	QueueTimeout Duration `json:"queue_timeout,omitempty"`
	// TotalDeadline bounds the time from the claim of a call to its answer, all
	// attempts included. Defaults to 15 min, or to one attempt's times if longer.
	TotalDeadline Duration `json:"total_deadline,omitempty"`
	// Attempts is how often a technical failure lets the call run, at most. Defaults
	// to 3 for functions that may be run again (EffectsNone, EffectsIdempotent) and to
	// 1 for others.
	Attempts int `json:"attempts,omitempty"`
	// Backoff is the wait between attempts.
	Backoff Backoff `json:"backoff,omitzero"`
	// Effects says what running it twice does. Defaults to EffectsSideEffects.
	Effects Effects `json:"effects,omitempty"`
	// OnUncertain decides about a call that may already have run. Defaults to
	// UncertainRerun for functions that may be run again, to UncertainVerify for
	// others with a verify handler, and to UncertainFail for the rest.
	OnUncertain OnUncertain `json:"on_uncertain,omitempty"`
}

// Backoff is the wait before attempt n+1: Initial, multiplied with each further
// attempt, Max at most, spread by Jitter.
type Backoff struct {
	// Initial defaults to 1 s, Max to 1 min.
	Initial Duration `json:"initial,omitempty"`
	Max     Duration `json:"max,omitempty"`
	// Multiplier defaults to 2, and is 1 at least.
	Multiplier float64 `json:"multiplier,omitempty"`
	// Jitter is the part of a wait, 0 to 1, by which it may be longer or shorter.
	// Defaults to 0.2.
	Jitter float64 `json:"jitter,omitempty"`
}

// The defaults of Policy.
const (
	DefaultTimeout       = 30 * time.Second
	DefaultQueueTimeout  = 60 * time.Second
	DefaultTotalDeadline = 15 * time.Minute
	DefaultAttempts      = 3
)

// WithDefaults is the function's policy with every unset field at its default.
func (f Function) WithDefaults() Policy {
	p := f.Policy
	set := func(d *Duration, v time.Duration) {
		if *d == 0 {
			*d = Duration(v)
		}
	}
	set(&p.Timeout, DefaultTimeout)
	set(&p.QueueTimeout, DefaultQueueTimeout)
	set(&p.TotalDeadline, max(DefaultTotalDeadline, time.Duration(p.QueueTimeout+p.Timeout)))
	set(&p.Backoff.Initial, time.Second)
	set(&p.Backoff.Max, time.Minute)
	if p.Backoff.Multiplier == 0 {
		p.Backoff.Multiplier = 2
	}
	if p.Backoff.Jitter == 0 {
		p.Backoff.Jitter = 0.2
	}
	if p.Effects == "" {
		p.Effects = EffectsSideEffects
	}
	again := p.Effects != EffectsSideEffects
	if p.Attempts == 0 {
		p.Attempts = 1
		if again {
			p.Attempts = DefaultAttempts
		}
	}
	if p.OnUncertain == "" {
		switch {
		case again:
			p.OnUncertain = UncertainRerun
		case f.Verifies:
			p.OnUncertain = UncertainVerify
		default:
			p.OnUncertain = UncertainFail
		}
	}
	return p
}

// Over is the policy other with every field that p sets replaced.
func (p Policy) Over(other Policy) Policy {
	out := other
	replace(&out.Timeout, p.Timeout)
	replace(&out.QueueTimeout, p.QueueTimeout)
	replace(&out.TotalDeadline, p.TotalDeadline)
	replace(&out.Attempts, p.Attempts)
	replace(&out.Backoff.Initial, p.Backoff.Initial)
	replace(&out.Backoff.Max, p.Backoff.Max)
	replace(&out.Backoff.Multiplier, p.Backoff.Multiplier)
	replace(&out.Backoff.Jitter, p.Backoff.Jitter)
	replace(&out.Effects, p.Effects)
	replace(&out.OnUncertain, p.OnUncertain)
	return out
}

func replace[T comparable](dst *T, v T) {
	var zero T
	if v != zero {
		*dst = v
	}
}

// Rerun says whether a call that may already have run can simply be run again. Ask
// it of a policy with its defaults.
func (p Policy) Rerun() bool { return p.OnUncertain == UncertainRerun }

func (p Policy) validate() error {
	switch {
	case p.Timeout < 0 || p.QueueTimeout < 0 || p.TotalDeadline < 0:
		return errors.New("timeouts must not be negative")
	case p.Attempts < 0 || p.Attempts > 1000:
		return fmt.Errorf("attempts is %d; use 1 to 1000", p.Attempts)
	case p.Backoff.Initial < 0 || p.Backoff.Max < 0:
		return errors.New("the backoff's times must not be negative")
	case p.Backoff.Multiplier != 0 && p.Backoff.Multiplier < 1:
		return fmt.Errorf("the backoff's multiplier is %g; use 1 or more", p.Backoff.Multiplier)
	case p.Backoff.Jitter < 0 || p.Backoff.Jitter > 1:
		return fmt.Errorf("the backoff's jitter is %g; use 0 to 1", p.Backoff.Jitter)
	}
	switch p.Effects {
	case "", EffectsNone, EffectsIdempotent, EffectsSideEffects:
	default:
		return fmt.Errorf("effects is %q; use none, idempotent or side_effects", p.Effects)
	}
	switch p.OnUncertain {
	case "", UncertainRerun, UncertainVerify, UncertainFail, UncertainPark:
	default:
		return fmt.Errorf("on_uncertain is %q; use rerun, verify, fail or park", p.OnUncertain)
	}
	return nil
}
