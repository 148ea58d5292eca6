package property_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// pool is the model of the executors: every delivery is taken at once, and follows the
// duties of executors until its fate strikes.
type pool struct {
	w *world
	// careless executors run a call that may have run without asking: a planted fault.
	careless bool

	wg   sync.WaitGroup
	ctx  context.Context
	stop context.CancelFunc

	mu     sync.Mutex
	fates  map[call.Key][]fate
	work   map[call.Key]time.Duration
	inHand map[call.Key]map[*handling]bool
}

// delivery is one hand-out of a stored call.
type delivery struct {
	call.Dispatch
	deliveries int
	sequence   uint64
}

// handling is a delivery in an executor's hands.
type handling struct {
	delivery
	cancelled chan struct{}
	once      sync.Once
	release   context.CancelFunc // ends the extension of the lease
}

func newPool(w *world) *pool {
	p := &pool{
		w: w, fates: map[call.Key][]fate{}, work: map[call.Key]time.Duration{},
		inHand: map[call.Key]map[*handling]bool{},
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

func (p *pool) plan(key call.Key, c plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fates[key], p.work[key] = c.fates, c.work
}

// take accepts a delivery.
func (p *pool) take(d delivery) {
	h := &handling{delivery: d, cancelled: make(chan struct{})}
	p.mu.Lock()
	if p.inHand[d.Key] == nil {
		p.inHand[d.Key] = map[*handling]bool{}
	}
	p.inHand[d.Key][h] = true
	f := finishes
	if list := p.fates[d.Key]; len(list) > 0 {
		f, p.fates[d.Key] = list[0], list[1:]
	}
	work := p.work[d.Key]
	p.mu.Unlock()
	p.w.trace("%s delivered, the %d. time; it %s", name(d.Dispatch), d.deliveries, f)
	p.wg.Go(func() {
		defer p.drop(h)
		p.hold(h)
		defer h.release()
		p.handle(h, f, work)
	})
}

func (p *pool) drop(h *handling) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inHand[h.Key], h)
}

// alone says that no other executor has the call in hand.
func (p *pool) alone(key call.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.inHand[key]) == 1
}

// idle says that no executor has the call in hand.
func (p *pool) idle(key call.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.inHand[key]) == 0
}

// cancel has the executors stop working on a call.
func (p *pool) cancel(key call.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for h := range p.inHand[key] {
		h.once.Do(func() { close(h.cancelled) })
	}
}

// hold extends the lease until release.
func (p *pool) hold(h *handling) {
	var ctx context.Context
	ctx, h.release = context.WithCancel(p.ctx)
	p.wg.Go(func() {
		beat := time.NewTicker(callLease / 4)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
				p.w.queue.extend(h.sequence)
			}
		}
	})
}

// handle takes a delivered call to its end: look it up if it may have run, run it,
// report, ack.
func (p *pool) handle(h *handling, f fate, work time.Duration) {
	if f == vanishes {
		return
	}
	how := fresh
	if h.deliveries > 1 || h.Uncertain {
		var goesOn bool
		if how, goesOn = p.again(h, f); !goesOn {
			return
		}
	}
	switch {
	case h.isCancelled():
		p.w.queue.ack(h.sequence)
	case f == releases:
		p.answer(h, call.Outcome{Kind: call.Released})
	case !time.Now().Before(h.Deadline):
		p.answer(h, failure(call.ReasonDeadline, "the deadline passed before the start"))
	default:
		p.run(h, f, work, how)
	}
}

// run enters the handler.
func (p *pool) run(h *handling, f fate, work time.Duration, how entry) {
	n := p.w.check.entered(h.Dispatch, how)
	success := call.Outcome{Kind: call.Success, Output: json.RawMessage(fmt.Sprintf(`"run %d"`, n))}
	switch f {
	case diesEarly:
		return
	case stallsEarly:
		h.release()
		if !p.wait(h, callLease+work) {
			return
		}
	default:
		if !p.wait(h, work) {
			return
		}
	}
	switch f {
	case fails:
		p.answer(h, failure("", fmt.Sprintf("run %d failed", n)))
		return
	case asksRetry:
		p.w.check.harmless(h.Dispatch, n)
		p.answer(h, call.Outcome{Kind: call.Retry, Reason: fmt.Sprintf("run %d could not", n)})
		return
	}
	p.w.check.effect(h.Dispatch, n)
	switch f {
	case diesLate:
		return
	case stallsLate:
		h.release()
		if !p.wait(h, callLease+work) {
			return
		}
	case defers:
		p.answer(h, call.Outcome{Kind: call.Deferred})
		if !p.wait(h, work) {
			return
		}
	case isForged:
		forger := &handling{delivery: h.delivery}
		forger.Nonce += "x"
		p.report(forger, call.Outcome{Kind: call.Success, Output: json.RawMessage(`"forged"`)})
	case diesReported:
		p.report(h, success)
		return
	case repeats:
		p.report(h, success)
		if !p.wait(h, outcomeWindow) {
			return
		}
	}
	p.answer(h, success)
}

// wait lets time pass in the executor; false when the call was cancelled, and its
// message removed, or when everything ends.
func (p *pool) wait(h *handling, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ctx.Done():
		return false
	case <-h.cancelled:
		p.w.queue.ack(h.sequence)
		return false
	case <-timer.C:
		return true
	}
}

// answer reports and acks.
func (p *pool) answer(h *handling, o call.Outcome) {
	p.report(h, o)
	p.w.queue.ack(h.sequence)
}

func (p *pool) report(h *handling, o call.Outcome) {
	o.Executor = "model"
	_ = p.w.queue.Report(p.ctx, h.Dispatch, o) // the model's queue always stores it
}

func (h *handling) isCancelled() bool {
	select {
	case <-h.cancelled:
		return true
	default:
		return false
	}
}

func failure(cause, text string) call.Outcome {
	return call.Outcome{Kind: call.Failure, Cause: cause, Error: text}
}
