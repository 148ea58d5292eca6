package functionfile

import (
	"math"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// option reads what is not run.
func (l loader) option(e entry, where string) (executor.Option, error) {
	switch e.name {
	case "description":
		text, err := l.text(e.value, where)
		return executor.WithDescription(text), err
	case "parameters":
		schema, err := l.schema(e.value, where)
		return executor.WithParameters(schema), err
	case "timeout":
		d, err := l.duration(e.value, where)
		return executor.WithTimeout(d), err
	case "queue_timeout":
		d, err := l.duration(e.value, where)
		return executor.WithQueueTimeout(d), err
	case "total_deadline":
		d, err := l.duration(e.value, where)
		return executor.WithTotalDeadline(d), err
	case "attempts":
		n, err := l.number(e.value, where, 1, 1000)
		if err == nil && n != math.Trunc(n) {
			err = l.fault(e.value, "%s is %s; use a whole number from 1 to 1000", where, e.value.String())
		}
		return executor.WithAttempts(int(n)), err
	case "backoff":
		b, err := l.backoff(e, where)
		return executor.WithBackoff(b), err
	case "on_uncertain":
		return l.onUncertain(e, where)
	default:
		return l.effects(e, where)
	}
}

func (l loader) effects(e entry, where string) (executor.Option, error) {
	text, err := l.text(e.value, where)
	if err != nil {
		return nil, err
	}
	switch effects := call.Effects(text); effects {
	case call.EffectsNone, call.EffectsIdempotent, call.EffectsSideEffects:
		return executor.WithEffects(effects), nil
	}
	return nil, l.fault(e.value, "%s is %q; use none, idempotent or side_effects", where, text)
}

func (l loader) onUncertain(e entry, where string) (executor.Option, error) {
	text, err := l.text(e.value, where)
	if err != nil {
		return nil, err
	}
	switch choice := call.OnUncertain(text); choice {
	case call.UncertainRerun, call.UncertainVerify, call.UncertainFail, call.UncertainPark:
		return executor.WithOnUncertain(choice), nil
	}
	return nil, l.fault(e.value, "%s is %q; use rerun, verify, fail or park", where, text)
}

func (l loader) backoff(at entry, where string) (call.Backoff, error) {
	var b call.Backoff
	entries, err := l.mapping(at.value, where)
	if err != nil {
		return b, err
	}
	duration := func(e entry) call.Duration {
		d, failed := l.duration(e.value, where+": "+e.name)
		err = failed
		return call.Duration(d)
	}
	for _, e := range entries {
		switch e.name {
		case "initial":
			b.Initial = duration(e)
		case "max":
			b.Max = duration(e)
		case "multiplier":
			b.Multiplier, err = l.number(e.value, where+": multiplier", 1, 1000)
		case "jitter":
			// Zero would mean the default.
			if b.Jitter, err = l.number(e.value, where+": jitter", 0, 1); err == nil && b.Jitter == 0 {
				err = l.fault(e.value, "%s: jitter is 0; use more than 0, so that calls which failed together do not come back together", where)
			}
		default:
			err = l.unknownKey(e, where, []string{"initial", "max", "multiplier", "jitter"})
		}
		if err != nil {
			return b, err
		}
	}
	if b.Max > 0 && b.Max < b.Initial {
		return b, l.fault(at.key, "%s: max is %s, less than initial, %s; swap them", where, b.Max, b.Initial)
	}
	return b, nil
}
