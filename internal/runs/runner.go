package runs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
)

// runner drives one run on the replica that owns it. All but the board belongs to the
// goroutine of main.
type runner struct {
	e   *Engine
	d   Dispatcher
	id  string
	log *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	// wake: something may have changed. nudges: somebody asks to look at the store.
	wake, nudges chan struct{}

	mu        sync.Mutex
	board     board
	interrupt context.CancelFunc // ends the request under way
	// cancelled: somebody asked to end the run.
	cancelled atomic.Bool

	run      Run
	revision uint64
	request  *Request
	tools    json.RawMessage
	attached bool
	// fresh: the request of the latest round has certainly not been made yet.
	fresh   bool
	trouble *backoff.ExponentialBackOff
	// troubled is the error that was logged last.
	troubled string
}

func newRunner(ctx context.Context, e *Engine, d Dispatcher, id string) *runner {
	r := &runner{
		e: e, d: d, id: id, log: e.log.With("run_id", id),
		wake: make(chan struct{}, 1), nudges: make(chan struct{}, 1), trouble: delays(200*time.Millisecond, 10*time.Second),
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.clear()
	return r
}

// main drives the run until it is over, which it then says, or until the replica has to
// let go of it.
func (r *runner) main() (over bool) {
	var listening sync.WaitGroup
	defer listening.Wait()
	defer r.cancel()
	listening.Go(r.listen)
	for r.ctx.Err() == nil {
		err := r.drive()
		if err == nil {
			err = r.retire()
		}
		switch {
		case err == nil:
			return true
		case r.ctx.Err() != nil:
			return false
		case errors.Is(err, ErrNotFound): // its time in the store is over
			r.log.Warn("a run that was to be driven is not in the store any more")
			_ = r.d.Detach(r.ctx, r.id)
			return r.e.parts.Store.Retire(r.ctx, r.id) == nil
		case errors.Is(err, ErrTooLarge):
			r.run.Text, r.run.Refusal = "", ""
			err = r.finish(Failed, ReasonTooLarge, err.Error())
		}
		if errors.Is(err, ErrStale) {
			r.log.Debug("the run was changed by another replica")
		} else if err != nil {
			r.fault(err)
		}
		r.clear()
		r.pause(r.trouble.NextBackOff())
	}
	return false
}

// listen looks after a nudge whether the run was cancelled.
func (r *runner) listen() {
	signal(r.nudges)
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.nudges:
		}
		cancelled, err := r.e.parts.Store.Cancelled(r.ctx, r.id)
		if err != nil && r.ctx.Err() == nil {
			pause(r.ctx, time.Second)
			signal(r.nudges)
			continue
		}
		if cancelled && !r.cancelled.Swap(true) {
			r.mu.Lock()
			if r.interrupt != nil {
				r.interrupt()
			}
			r.mu.Unlock()
		}
		signal(r.wake)
	}
}

// drive loads the run and takes it from step to step to its end.
func (r *runner) drive() error {
	if err := r.load(); err != nil {
		return err
	}
	for !r.run.Status.Final() {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.step(); err != nil {
			return err
		}
	}
	return nil
}

// load reads the run, and puts this replica's name on it: what another one still writes
// is then refused.
func (r *runner) load() (err error) {
	r.fresh = false
	store := r.e.parts.Store
	if r.run, r.revision, err = store.Load(r.ctx, r.id); err != nil || r.run.Status.Final() {
		return err
	}
	body, err := store.Request(r.ctx, r.id)
	if err != nil {
		return err
	}
	if r.request, err = ParseRequest(body); err != nil {
		return r.finish(Failed, ReasonRefused, err.Error())
	}
	if r.tools, err = store.PutTools(r.ctx, r.id, json.RawMessage("[]")); err != nil {
		return err
	}
	cancelled, err := store.Cancelled(r.ctx, r.id)
	if err != nil {
		return err
	}
	r.cancelled.Store(cancelled)
	if r.run.Owner != r.e.cfg.Name {
		r.run.Owner = r.e.cfg.Name
		if err := r.save(); err != nil {
			return err
		}
	}
	return r.restore()
}

// step does the next thing.
func (r *runner) step() error {
	switch now := time.Now(); {
	case r.cancelled.Load():
		return r.finish(Cancelled, "", "")
	case !now.Before(r.run.Deadline):
		return r.finish(Stopped, ReasonTime, "the run took longer than "+r.run.Bounds.Time.String())
	case len(r.run.Rounds) == 0:
		return r.nextRound(nil)
	}
	if round := r.round(); !round.Done {
		return r.respond()
	}
	return r.gather()
}

// round is the latest one.
func (r *runner) round() *Round { return &r.run.Rounds[len(r.run.Rounds)-1] }

func (r *runner) number() int { return len(r.run.Rounds) }

// ref names an item of a round's present response.
func (r *runner) ref(round, index int) Ref {
	return Ref{Round: round, Attempt: r.run.Rounds[round-1].Attempt, Index: index}
}

// nextRound records the intent to make the next request.
func (r *runner) nextRound(sent []Ref) error {
	round := Round{Attempt: 1, Began: time.Now().UTC(), Sent: sent}
	if r.request.conversation != "" {
		items, err := r.e.parts.Model.Items(r.ctx, r.request.conversation)
		if err != nil {
			return r.apiTrouble(err)
		}
		round.LastItem = newest(items)
	}
	r.run.Rounds = append(r.run.Rounds, round)
	r.run.Status = InProgress
	if err := r.save(); err != nil {
		return err
	}
	r.fresh = true
	r.progress()
	r.tell(Notice{Type: NoticeRound, Round: r.number()})
	return nil
}

// save writes the run. After an error the run in memory is not to be used any more.
func (r *runner) save() (err error) {
	r.run.Changed = time.Now().UTC()
	r.revision, err = r.e.parts.Store.Save(r.ctx, r.run, r.revision)
	return err
}

// finish ends the run.
func (r *runner) finish(status Status, reason, text string) error {
	if r.number() > 0 && !r.round().Done && r.round().Response != "" && r.request.background && status != Failed {
		ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
		if err := r.e.parts.Model.Cancel(ctx, r.round().Response); err != nil {
			r.log.Warn("the response of a run that ends was not cancelled", "response_id", r.round().Response, "error", err)
		}
		cancel()
	}
	r.run.Status, r.run.Reason, r.run.Error = status, reason, text
	r.run.Ended = time.Now().UTC()
	if err := r.save(); err != nil {
		return err
	}
	r.e.parts.Observer.RunEnded(status)
	r.log.Info("run ended", "status", string(status), "reason", reason, "rounds", r.number())
	r.tell(r.run.EndNotice())
	return nil
}

// retire cleans up behind a run that is over: calls that are still being run are
// cancelled by the dispatcher, which sees that nobody waits for them.
func (r *runner) retire() error {
	r.clear()
	r.d.Nudge(r.id, "run ended")
	if err := r.d.Detach(r.ctx, r.id); err != nil {
		return err
	}
	return r.e.parts.Store.Retire(r.ctx, r.id)
}

// apiTrouble waits as long as the API wants after a refusal that may pass, or ends the
// run.
func (r *runner) apiTrouble(err error) error {
	refused, ok := errors.AsType[*call.Refusal](err)
	if !ok {
		return err
	}
	switch refused.Class {
	case call.RefusedInvalid, call.RefusedTooLarge, call.RefusedGone, call.RefusedUnknownCall:
		reason := refused.Code
		if reason == "" {
			reason = ReasonRefused
		}
		return r.finish(Failed, reason, refused.Err.Error())
	case call.RefusedAuth:
		r.fault(err)
		r.pause(max(refused.RetryAfter, 30*time.Second))
	default:
		r.fault(err)
		r.pause(max(refused.RetryAfter, r.trouble.NextBackOff()))
	}
	return nil
}

// progress ends a trouble.
func (r *runner) progress() {
	r.trouble.Reset()
	r.troubled = ""
}

// fault logs a trouble when it is new.
func (r *runner) fault(err error) {
	if text := err.Error(); text != r.troubled && r.ctx.Err() == nil {
		r.troubled = text
		r.log.Warn("the run is in trouble", "error", err)
	}
}

// pause waits, but not longer than the run may take, nor when it is cancelled.
func (r *runner) pause(d time.Duration) {
	until := time.Now().Add(d)
	if !r.run.Deadline.IsZero() && r.run.Deadline.Before(until) {
		until = r.run.Deadline
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for !r.cancelled.Load() {
		select {
		case <-r.ctx.Done():
		case <-timer.C:
		case <-r.wake:
			continue
		}
		return
	}
}

// await waits for something that wakes the runner, at most d and no longer than the run
// may take.
func (r *runner) await(d time.Duration) {
	timer := time.NewTimer(min(d, max(0, time.Until(r.run.Deadline))))
	defer timer.Stop()
	select {
	case <-r.ctx.Done():
	case <-timer.C:
	case <-r.wake:
	}
}

func (r *runner) tell(n Notice) {
	n.Run = r.id
	r.e.parts.Notices.Tell(n)
}
