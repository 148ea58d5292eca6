package property_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// crashLimit is how many deliveries an executor enters a call at.
const crashLimit = 3

// again decides about a call that may have run, as executors must: look it up, then go
// by its policy. false means that it was ended.
func (p *pool) again(h *handling, f fate) (how entry, goesOn bool) {
	if p.careless {
		return rerun, true
	}
	standing, ok := p.lookUp(h)
	unknown := failure(call.ReasonUnknownOutcome, call.UnknownOutcomeText)
	switch {
	case p.ctx.Err() != nil:
		return "", false
	case standing == call.StandingAnswered || standing == call.StandingCancelled:
		p.w.queue.ack(h.sequence)
		return "", false
	case h.deliveries > crashLimit:
		p.answer(h, failure(call.ReasonCrashed, call.CrashedText))
		return "", false
	}
	switch h.OnUncertain {
	case call.UncertainRerun:
		if !ok {
			p.answer(h, failure(call.ReasonDeadline, "nobody answered before the deadline"))
			return "", false
		}
		return rerun, true
	case call.UncertainVerify, call.UncertainPark:
		if ok && p.w.functions.verifies(h.Function) {
			return p.verify(h, f)
		}
		p.answer(h, call.Outcome{Kind: call.Uncertain, Reason: "it cannot be verified"})
		return "", false
	default:
		p.answer(h, unknown)
		return "", false
	}
}

// verify asks the model's downstream. While another executor may still be at work on
// the call, nobody can tell.
func (p *pool) verify(h *handling, f fate) (how entry, goesOn bool) {
	switch done := p.w.check.effects(h.Key); {
	case f == cannotVerify || !p.alone(h.Key):
		p.answer(h, call.Outcome{Kind: call.Uncertain, Reason: "the verify handler cannot tell"})
		return "", false
	case done > 0:
		p.answer(h, call.Outcome{Kind: call.Success, Output: json.RawMessage(fmt.Sprintf(`"run %d, as verified"`, done))})
		return "", false
	default:
		p.w.check.notDone(h.Key)
		return verified, true
	}
}

// lookUp asks the dispatchers until one answers or the call's deadline passes.
func (p *pool) lookUp(h *handling) (call.Standing, bool) {
	ctx, cancel := context.WithDeadline(p.ctx, h.Deadline)
	defer cancel()
	q := call.Question{Key: h.Key, Token: call.Token(h.Function), Nonce: h.Nonce}
	for {
		known := p.w.check.known(h.Key)
		for _, r := range p.w.running() {
			asking, done := context.WithTimeout(ctx, 200*time.Millisecond)
			standing, err := r.standing(asking, q)
			done()
			if err == nil {
				p.w.trace("%s looked up: %s", name(h.Dispatch), standing)
				p.w.check.told(h.Dispatch, known, standing)
				return standing, true
			}
		}
		pause := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return "", false
		case <-pause.C:
		}
	}
}
