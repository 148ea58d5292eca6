package dispatcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// sweep finds, now and then, what no event will ever mention: calls that the store has
// and no session serves, and calls that are served and the store has lost (ADR 0018).
func (d *Dispatcher) sweep(ctx context.Context) {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.cfg.Sweep*3/4 + rand.N(d.cfg.Sweep/2)): //nolint:gosec // spread over the replicas
		}
		err := d.sweepOnce(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			d.log.Warn("the store cannot be swept", "error", err)
		}
		failing = err != nil
	}
}

func (d *Dispatcher) sweepOnce(ctx context.Context) error {
	err := d.store.Unfinished(ctx, func(id string) error {
		if p := d.partition(call.Partition(id, d.cfg.Partitions)); p != nil {
			if p.lookup(id) == nil {
				d.obs.Count(EventSessionFound)
				d.log.Info("a session with unfinished calls was not served", "session_id", id, "partition", p.n)
			}
			p.session(id) // which loads what the store has
		}
		return ctx.Err()
	})
	for _, p := range d.ownedPartitions() {
		for _, s := range p.all() {
			s.post(s.audit)
		}
	}
	return err
}

// audit compares the session's calls with the store's records.
func (s *session) audit() {
	if s.claims.running > 0 || s.publishing || s.completing > 0 || s.auditing || len(s.calls) == 0 && !s.watched {
		return // the next sweep
	}
	s.auditing = true
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, requestTimeout)
		defer cancel()
		recs, err := s.d.store.Session(ctx, s.id)
		return func() {
			s.auditing = false
			if err == nil {
				s.audited(recs, time.Now())
			}
		}
	})
}

func (s *session) audited(recs []results.Record, now time.Time) {
	recorded := make(map[call.Key]bool, len(recs))
	for _, r := range recs {
		recorded[r.Key] = true
		t := s.calls[r.Key]
		switch {
		case t == nil && !r.State.Final() && r.Since > auditAge && !s.moves.has(r.Key):
			s.d.obs.Count(EventCallFound)
			t = &tracked{Call: call.Call{Key: r.Key, Function: r.Function}}
			s.calls[r.Key] = t
			s.adopt(t, r, now)
			s.wantGet(now)
		case t != nil && t.state.Open() && !t.busy && !r.State.Open():
			s.d.obs.Count(EventCallFound) // its outcome was saved, and the session did not hear of it
			s.reach(t, r.State, "", now)
			s.adopt(t, r, now)
			s.wantGet(now)
		}
	}
	for key, t := range s.calls {
		if !recorded[key] && !t.busy && t.state != call.Absent && now.Sub(t.claimed) > auditAge {
			s.restore(t)
		}
	}
}

// auditAge is how old a difference has to be: younger ones are on their way.
const auditAge = 2 * time.Second

// restore records a call anew that the store lost.
func (s *session) restore(t *tracked) {
	s.d.obs.Count(EventRecordRestored)
	if t.result != nil {
		s.save(t, results.Completion{
			Key: t.Key, Function: t.Function, Attempt: t.attempt, Result: *t.result,
			OutcomeID: t.outcomeID, Adopt: true, Note: "recorded again: the store had lost it",
		}, nil)
		return
	}
	t.busy = true
	state, move := t.state, results.Move{
		Key: t.Key, To: t.state, Attempt: t.attempt, Handover: t.handover, Note: "recorded again: the store had lost it",
	}
	if state == call.Retrying {
		move.Attempt-- // the record has the attempt that failed
	}
	s.claims.running++
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.ctx, requestTimeout)
		defer cancel()
		claim := results.Claim{Key: t.Key, Function: t.Function, State: call.Seen}
		if state == call.Held {
			claim.State = call.Held
		}
		recs, err := s.d.store.Claim(ctx, s.p.fence, []results.Claim{claim})
		if err == nil && recs[0].State == claim.State && state != call.Held {
			err = s.record(ctx, []results.Move{move})
		}
		return func() {
			s.claims.running--
			s.free(t)
			switch {
			case errors.Is(err, results.ErrFenced):
				s.p.lost()
			case err != nil:
				s.fault(troubleClaim, err)
			}
		}
	})
}
