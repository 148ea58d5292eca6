package property_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
)

// decide is an operator who looks at the calls and decides about parked ones, or answers
// every open one.
func (w *world) decide(how fault) {
	recs, err := w.store.Get(context.Background(), w.keys)
	w.check.require(err)
	for i, rec := range recs {
		key := w.keys[i]
		switch {
		case rec.State == call.Parked && how == runsAgain && w.check.effects(key) == 0 && w.pool.idle(key):
			w.send(key, dispatcher.Decision{Rerun: true, By: "model"})
		case rec.State == call.Parked, rec.State.Open() && how == answers:
			w.send(key, dispatcher.Decision{By: "model", Result: call.Result{Success: true, Output: json.RawMessage(`"by an operator"`)}})
		}
	}
}

// send hands a decision to a dispatcher that answers.
func (w *world) send(key call.Key, decision dispatcher.Decision) {
	for _, r := range w.running() {
		ctx, done := context.WithTimeout(context.Background(), 100*time.Millisecond)
		takeBack := func() {}
		if decision.Rerun {
			takeBack = w.check.vouched(key)
		}
		w.trace("%s decided: %+v", short(key), decision)
		_, err := through(ctx, r.gate, nothing(func() error { return r.d.Decide(ctx, key, decision) }))
		done()
		if err == nil {
			return
		}
		if errors.Is(err, dispatcher.ErrNotParked) || errors.Is(err, dispatcher.ErrAnswered) || errors.Is(err, dispatcher.ErrNoCall) {
			takeBack()
			return
		}
	}
}
