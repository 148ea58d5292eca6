package runs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// respond has the round's response made, or follows one that is being made, until it has
// ended or something went wrong.
func (r *runner) respond() error {
	ctx, cancel := context.WithDeadline(r.ctx, r.run.Deadline)
	defer cancel()
	r.mu.Lock()
	r.interrupt = cancel
	r.mu.Unlock()
	if r.cancelled.Load() {
		return nil // it came before there was something to interrupt
	}
	var outcome *Outcome
	on := func(ev Event) error {
		if ev.Kind == Ended {
			outcome = ev.Outcome
		}
		return r.event(ev)
	}
	err := r.ask(ctx, on)
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case outcome != nil: // whatever became of the connection
		return r.settle(outcome)
	case r.run.Status.Final():
	case ctx.Err() != nil:
		return nil // cancelled, or out of time: the next step says so
	case err != nil:
		return r.notMade(err)
	case r.round().Response != "": // it is being made in the background
		r.await(r.pollAfter())
	default:
		r.fault(errors.New("the API took the request and did not say which response it makes"))
		r.pause(r.trouble.NextBackOff())
	}
	return nil
}

// ask makes the request, or follows its response.
func (r *runner) ask(ctx context.Context, on func(Event) error) error {
	round := r.round()
	if round.Response != "" {
		return r.observed("response_retrieve", func() error {
			return r.e.parts.Model.Retrieve(ctx, round.Response, round.Sequence, r.request.stream && r.request.background, on)
		})
	}
	if !r.fresh {
		if taken, err := r.maybeTaken(ctx); err != nil || taken {
			return err
		}
	}
	r.fresh = false
	body, err := r.body()
	if err != nil {
		return err
	}
	return r.observed("response_create", func() error { return r.e.parts.Model.Create(ctx, body, r.key(), on) })
}

// observed reports a request. What went wrong here, and not with the API, is no class of
// its own.
func (r *runner) observed(operation string, request func() error) error {
	start := time.Now()
	err := request()
	class := "ok"
	if refused, ok := errors.AsType[*call.Refusal](err); ok {
		class = string(refused.Class)
	}
	r.e.parts.Observer.Request(operation, class, time.Since(start))
	return err
}

// key is the idempotency key of the round's request: the same for the same bytes.
func (r *runner) key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", r.id, r.number(), r.round().Attempt))
	return "callfan_" + base64.RawURLEncoding.EncodeToString(sum[:18])
}

// body is the request of the round.
func (r *runner) body() (json.RawMessage, error) {
	store, n := r.e.parts.Store, r.number()
	m := material{run: r.id, round: n, tools: r.tools}
	if n > 1 {
		m.previous = r.run.Rounds[n-2].Response
	}
	sent := func(n int) (items []json.RawMessage, err error) {
		for _, ref := range r.run.Rounds[n-1].Sent {
			item, err := store.Output(r.ctx, r.id, ref)
			if err != nil {
				return nil, lost("an output", err)
			}
			items = append(items, item)
		}
		return items, nil
	}
	var err error
	if m.outputs, err = sent(n); err != nil {
		return nil, err
	}
	if !r.request.store {
		for earlier := 1; earlier < n; earlier++ {
			outputs, err := sent(earlier)
			if err != nil {
				return nil, err
			}
			m.earlier = append(m.earlier, outputs...)
			for i := range r.run.Rounds[earlier-1].Items {
				item, err := store.Item(r.ctx, r.id, r.ref(earlier, i))
				if err != nil {
					return nil, lost("an item", err)
				}
				m.earlier = append(m.earlier, item)
			}
		}
	}
	return r.request.compose(m)
}

// lost keeps the absence of an entry apart from that of the run.
func lost(what string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%s of the run is missing from the store", what)
	}
	return err
}

// event records what the API tells.
func (r *runner) event(ev Event) error {
	round := r.round()
	defer func() { round.Sequence = max(round.Sequence, ev.Sequence) }()
	switch ev.Kind {
	case Created:
		if round.Response != "" {
			return nil
		}
		if err := r.e.parts.Store.Remember(r.ctx, ev.Response, r.id); err != nil {
			return err
		}
		round.Response, round.Sequence = ev.Response, ev.Sequence
		return r.save()
	case ItemAdded:
		if it := readItem(ev.Item); it.Type == "function_call" || it.Type == "custom_tool_call" {
			r.tell(Notice{Type: NoticeCall, Round: r.number(), Response: round.Response, Call: it.CallID, Function: it.function()})
		}
	case TextDelta:
		r.tell(Notice{Type: NoticeText, Round: r.number(), Response: round.Response, Delta: ev.Delta})
	case ItemDone:
		return r.itemDone(ev)
	}
	return nil
}

// itemDone has a call run as soon as it is whole, where its response cannot be lost: one
// that is made in the background and has an id (ADR 0023).
func (r *runner) itemDone(ev Event) error {
	round := r.round()
	it := readItem(ev.Item)
	c, ok := it.call(ev.Index)
	known := slices.ContainsFunc(round.Calls, func(k Call) bool { return k.Index == c.Index || k.ID == c.ID })
	if !ok || known || !r.request.background || round.Response == "" {
		return nil
	}
	if reason, _ := r.exceeded(append(slices.Clone(round.Calls), c)); reason != "" {
		return nil // the end of the response decides
	}
	ref := r.ref(r.number(), ev.Index)
	if err := r.e.parts.Store.PutItem(r.ctx, r.id, ref, ev.Item); err != nil {
		return err
	}
	round.Calls, round.Sequence = append(round.Calls, c), max(round.Sequence, ev.Sequence)
	if err := r.save(); err != nil {
		return err
	}
	return r.present(ref, c, it)
}

// settle records how the response ended.
func (r *runner) settle(o *Outcome) error {
	round := r.round()
	switch o.Status {
	case "completed":
		r.progress()
	case "incomplete":
		r.run.Text, r.run.Refusal = answerText(o.Output)
		r.closeRound()
		return r.finish(Incomplete, o.Reason, o.Error)
	default:
		if len(round.Calls) == 0 && round.Attempt < r.e.cfg.Attempts && passing(o) {
			r.fault(fmt.Errorf("the response %s: %s %s", o.Status, o.Reason, o.Error))
			r.pause(r.trouble.NextBackOff())
			return r.anew()
		}
		r.closeRound()
		return r.finish(Failed, o.Reason, o.Error)
	}
	ids := map[string]bool{}
	var calls []Call
	for i, raw := range o.Output {
		if err := r.e.parts.Store.PutItem(r.ctx, r.id, r.ref(r.number(), i), raw); err != nil {
			return err
		}
		it := readItem(raw)
		if it.foreign() {
			r.closeRound()
			return r.finish(Failed, "unsupported_item", "the model asks for a "+it.Type+", which callfan does not do; leave the tool out")
		}
		if c, ok := it.call(i); ok && !ids[c.ID] {
			ids[c.ID] = true
			if at := slices.IndexFunc(round.Calls, func(k Call) bool { return k.ID == c.ID }); at >= 0 {
				c.Index = round.Calls[at].Index // it is being run under this one
			}
			calls = append(calls, c)
		}
	}
	reason, text := r.exceeded(calls)
	round.Calls, round.Items = calls, len(o.Output)
	r.closeRound()
	r.run.Text, r.run.Refusal = answerText(o.Output)
	switch {
	case reason != "":
		return r.finish(Stopped, reason, text)
	case len(calls) == 0 && !r.awaitsAsync():
		return r.finish(Completed, "", "")
	}
	r.run.Status = RequiresAction
	return r.save()
}

func (r *runner) closeRound() {
	round := r.round()
	round.Done, round.Ended = true, time.Now().UTC()
}

// passing says whether it is of use to ask for a failed response again.
func passing(o *Outcome) bool {
	return o.Status == "cancelled" || slices.Contains([]string{"server_error", "rate_limit_exceeded", ""}, o.Reason)
}

// anew has the round's response made once more.
func (r *runner) anew() error {
	round := r.round()
	round.Response, round.Sequence = "", 0
	round.Attempt++
	return r.save()
}

// notMade decides what to do after an error.
func (r *runner) notMade(err error) error {
	refused, ok := errors.AsType[*call.Refusal](err)
	round := r.round()
	if !ok || round.Response == "" {
		return r.apiTrouble(err)
	}
	if refused.Class == call.RefusedGone || !r.request.store {
		if len(round.Calls) > 0 {
			return r.finish(Failed, ReasonLostResponse, "the response "+round.Response+" is gone: "+refused.Err.Error())
		}
		r.fault(err)
		r.pause(r.trouble.NextBackOff())
		return r.anew()
	}
	return r.apiTrouble(err)
}

// pollAfter is the wait before the next look at a response that is not streamed.
func (r *runner) pollAfter() time.Duration {
	return min(r.e.cfg.Poll, max(500*time.Millisecond, time.Since(r.round().Began)/4))
}

// exceeded names the bound that the calls of the latest response exceed.
func (r *runner) exceeded(calls []Call) (reason, text string) {
	if len(calls) == 0 {
		return "", ""
	}
	b, n := r.run.Bounds, r.number()
	total := len(calls)
	for _, round := range r.run.Rounds[:n-1] {
		total += len(round.Calls)
	}
	switch {
	case n >= b.Rounds:
		return ReasonRounds, fmt.Sprintf("after %d rounds the model still asks for functions", n)
	case total > b.Calls:
		return ReasonCalls, fmt.Sprintf("the model asks for more than %d calls", b.Calls)
	}
	for _, c := range calls {
		rounds := 1
		for i := n - 2; i >= 0 && slices.ContainsFunc(r.run.Rounds[i].Calls, func(k Call) bool { return k.Print == c.Print }); i-- {
			rounds++
		}
		if rounds > b.Repeats {
			return ReasonRepeats, fmt.Sprintf("the model calls %s with the same arguments in %d rounds on end", c.Function, rounds)
		}
	}
	return "", ""
}
