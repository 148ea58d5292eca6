package simulator

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// faultSet is the live fault plan. Without one, requests do not take its lock.
type faultSet struct {
	active atomic.Bool
	mu     sync.Mutex
	plan   Faults // counters are counted down here
	rng    *rand.Rand
	fired  map[FaultKind]int64
}

// SetFaults replaces the fault plan, counters included. An invalid plan is refused and changes nothing.
func (s *Simulator) SetFaults(f Faults) error {
	if err := f.validate(); err != nil {
		return err
	}
	f.Rules = slices.Clone(f.Rules)
	f.RefuseCalls = slices.Clone(f.RefuseCalls)
	f.LatencyEndpoints = slices.Clone(f.LatencyEndpoints)
	for i := range f.RefuseCalls {
		if f.RefuseCalls[i].Next == 0 {
			f.RefuseCalls[i].Next = -1 // always
		}
	}
	seed := f.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	fs := &s.faults
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.plan = f
	fs.rng = rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)) //nolint:gosec // Draws faults, keeps no secret.
	fs.active.Store(len(f.Rules) > 0 || len(f.RefuseCalls) > 0 ||
		f.Latency != Span{} || f.ListedAfterAccept != Span{} || f.RegistrationDelay != Span{})
	return nil
}

// Faults returns the plan in force; its Skip and Next are what is left of them.
func (s *Simulator) Faults() Faults {
	fs := &s.faults
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.plan
	f.Rules = slices.Clone(f.Rules)
	f.LatencyEndpoints = slices.Clone(f.LatencyEndpoints)
	f.RefuseCalls = slices.DeleteFunc(slices.Clone(f.RefuseCalls), func(r RefusedCall) bool { return r.Next == 0 })
	for i := range f.RefuseCalls {
		f.RefuseCalls[i].Next = max(f.RefuseCalls[i].Next, 0)
	}
	return f
}

// fire returns the kind of fault, among kinds, that strikes at this chance.
func (fs *faultSet) fire(at Endpoint, kinds ...FaultKind) FaultKind {
	return fs.fireRule(at, kinds...).Kind
}

func (fs *faultSet) fireRule(at Endpoint, kinds ...FaultKind) FaultRule {
	if !fs.active.Load() {
		return FaultRule{}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for i := range fs.plan.Rules {
		rule := &fs.plan.Rules[i]
		if rule.Endpoint != "" && rule.Endpoint != at || !slices.Contains(kinds, rule.Kind) {
			continue
		}
		switch {
		case rule.Skip > 0:
			rule.Skip--
			continue
		case rule.Next > 0:
			rule.Next--
		case rule.Rate > 0 && fs.rng.Float64() < rule.Rate:
		default:
			continue
		}
		if fs.fired == nil {
			fs.fired = make(map[FaultKind]int64)
		}
		fs.fired[rule.Kind]++
		return *rule
	}
	return FaultRule{}
}

func (fs *faultSet) counts() map[FaultKind]int64 {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.fired == nil {
		return map[FaultKind]int64{}
	}
	return maps.Clone(fs.fired)
}

func (fs *faultSet) draw(choose func(*Faults) Span) time.Duration {
	if !fs.active.Load() {
		return 0
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	span := choose(&fs.plan)
	if span.MaxMS == 0 {
		return 0
	}
	return time.Duration(span.MinMS)*time.Millisecond +
		time.Duration(fs.rng.Int64N(int64(span.MaxMS-span.MinMS)*int64(time.Millisecond)+1))
}

func (fs *faultSet) latency(at Endpoint) time.Duration {
	return fs.draw(func(f *Faults) Span {
		if len(f.LatencyEndpoints) > 0 && !slices.Contains(f.LatencyEndpoints, at) {
			return Span{}
		}
		return f.Latency
	})
}

func (fs *faultSet) registrationDelay() time.Duration {
	return fs.draw(func(f *Faults) Span { return f.RegistrationDelay })
}

func (fs *faultSet) listedAfterAccept() time.Duration {
	return fs.draw(func(f *Faults) Span { return f.ListedAfterAccept })
}

func (fs *faultSet) lossKeepsKey() bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.plan.AcceptedLostKeepsKey
}

// refuses reports whether a result of the call is refused, and whether the error names the call.
func (fs *faultSet) refuses(callID, function string) (refused, named bool) {
	if !fs.active.Load() {
		return false, false
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for i := range fs.plan.RefuseCalls {
		r := &fs.plan.RefuseCalls[i]
		if r.Next == 0 || r.CallID != "" && r.CallID != callID || r.CallID == "" && r.Function != function {
			continue
		}
		if r.Next > 0 {
			r.Next--
		}
		return true, !r.Unnamed
	}
	return false, false
}
