package kvstore

import (
	"slices"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/internal/history"
)

// edit is the change of one turn in memory. It becomes true when the turn is
// written over the revision that was read, and is made anew when that fails.
type edit struct {
	*turn
	exists  bool
	created time.Time // of the value that was read
	now     int64
	config  Config

	changed bool
	puts    map[string][]byte // results that the turn points to now, by key
	drops   []string          // keys of results that it no longer points to
}

// enter checks the fence, and records a higher one if the turn exists.
func (e *edit) enter(fence uint64) bool {
	if fence < e.fence {
		return false
	}
	if fence > e.fence && e.exists {
		e.stamp(fence)
	}
	return true
}

func (e *edit) stamp(fence uint64) {
	if fence != e.fence {
		e.fence, e.changed = fence, true
	}
}

func (e *edit) make(fence uint64, c *entryOfCall) {
	e.add(c)
	e.exists, e.changed = true, true
	e.stamp(fence)
}

// ttl is how long the turn is to live.
func (e *edit) ttl() time.Duration {
	if e.ended() {
		return e.config.Retention
	}
	return e.config.ActiveTTL
}

// claim is results.Store.Claim for one call.
func (e *edit) claim(fence uint64, c results.Claim) *entryOfCall {
	known := e.index[c.Key.Call]
	if known == nil {
		known = &entryOfCall{call: c.Key.Call, function: c.Function, state: c.State, claimed: e.now, changed: e.now}
		known.step(e.now, "")
		e.make(fence, known)
	}
	// Listed calls keep their turn alive: it is written again at half its life.
	if !e.created.IsZero() && time.UnixMilli(e.now).Sub(e.created) > e.ttl()/2 {
		e.changed = true
	}
	return known
}

// complete is results.Store.Complete for one call; stored is its result as the
// bucket keeps it.
func (e *edit) complete(fence uint64, c results.Completion, stored storedBody) (results.Verdict, *entryOfCall) {
	known := e.index[c.Key.Call]
	if known == nil {
		if !c.Adopt {
			return results.Unknown, nil
		}
		known = &entryOfCall{
			call: c.Key.Call, function: c.Function, state: call.Queued, attempt: c.Attempt, claimed: e.now,
		}
		e.make(fence, known)
	}
	if !known.state.Open() {
		if c.OutcomeID != "" && c.OutcomeID == known.outcome {
			return results.Saved, known
		}
		return results.Superseded, known
	}
	known.state, known.changed = call.Failed, e.now
	if c.Result.Success {
		known.state = call.Succeeded
	}
	known.outcome, known.body = c.OutcomeID, stored.name
	known.step(e.now, history.Note(c.Note))
	e.puts[e.id.bodyKey(known.call, known.body)] = stored.value
	e.changed = true
	return results.Saved, known
}

// move is results.Store.Move for one call.
func (e *edit) move(m results.Move) results.Moved {
	known := e.index[m.Key.Call]
	if known == nil {
		return results.Moved{}
	}
	attempt, handover := known.attempt, known.handover
	if m.Attempt != 0 {
		attempt = m.Attempt
	}
	if m.Handover != 0 {
		handover = m.Handover
	}
	note := history.Note(m.Note)
	if known.state == m.To && attempt == known.attempt && handover == known.handover {
		if note != "" && note != history.LatestNote(known.history) {
			known.step(e.now, note)
			e.changed = true
		}
		return results.Moved{Done: true, State: known.state}
	}
	// Only Complete saves results.
	if m.To == call.Succeeded || m.To == call.Failed || !slices.Contains(m.To.From(), known.state) {
		return results.Moved{State: known.state}
	}
	known.state, known.attempt, known.handover, known.changed = m.To, attempt, handover, e.now
	known.step(e.now, note)
	if m.To.Final() && known.body != "" {
		key := e.id.bodyKey(known.call, known.body)
		e.drops = append(e.drops, key)
		delete(e.puts, key)
		known.body = ""
	}
	e.changed = true
	return results.Moved{Done: true, State: m.To}
}
