package kvstore

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// turnID names a turn.
type turnID struct{ session, turn string }

func idOf(k call.Key) turnID { return turnID{k.Session, k.Turn} }

func (t turnID) key() string { return "t." + hash(t.session) + "." + hash(t.turn) }

// bodyKey is the key of a result of one of the turn's calls.
func (t turnID) bodyKey(id, body string) string {
	return "b." + hash(t.session) + "." + hash(t.turn) + "." + hash(id) + "." + body
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))[:22]
}

// turn is the value of a turn.
type turn struct {
	id    turnID
	fence uint64
	calls []*entryOfCall
	index map[string]*entryOfCall
}

// entryOfCall is what a turn knows of one call.
type entryOfCall struct {
	call              string
	function          string
	state             call.State
	attempt, handover int
	claimed, changed  int64 // ms
	outcome           string
	body              string // the last part of the result's key; empty when there is none
	history           []byte // the steps; see package history
}

func newTurn(id turnID) *turn { return &turn{id: id, index: map[string]*entryOfCall{}} }

func (t *turn) add(e *entryOfCall) {
	t.calls = append(t.calls, e)
	t.index[e.call] = e
}

// ended says that no call is open or saved.
func (t *turn) ended() bool {
	for _, e := range t.calls {
		if !e.state.Final() {
			return false
		}
	}
	return true
}

func (t *turn) record(e *entryOfCall, now int64) results.Record {
	return results.Record{
		Key:       call.Key{Session: t.id.session, Turn: t.id.turn, Call: e.call},
		Function:  e.function,
		State:     e.state,
		Attempt:   e.attempt,
		Handover:  e.handover,
		ClaimedAt: time.UnixMilli(e.claimed),
		OutcomeID: e.outcome,
		Age:       max(0, time.Duration(now-e.claimed)*time.Millisecond),
		Since:     max(0, time.Duration(now-e.changed)*time.Millisecond),
	}
}

// turnVersion is that of turns with histories; those of version 1 have none.
const turnVersion = 2

func (t *turn) encode() []byte {
	var e encoder
	e.uint(turnVersion)
	e.text(t.id.session)
	e.text(t.id.turn)
	e.uint(t.fence)
	e.uint(uint64(len(t.calls)))
	for _, c := range t.calls {
		e.text(c.call)
		e.text(c.function)
		e.text(string(c.state))
		e.uint(uint64(c.attempt))  //nolint:gosec // never negative
		e.uint(uint64(c.handover)) //nolint:gosec // never negative
		e.uint(uint64(c.claimed))  //nolint:gosec // never negative
		e.uint(uint64(c.changed))  //nolint:gosec // never negative
		e.text(c.outcome)
		e.text(c.body)
		e.text(string(c.history))
	}
	return e.b
}

func decodeTurn(value []byte) (*turn, error) {
	d := decoder{b: value}
	version := d.uint()
	if version < 1 || version > turnVersion {
		return nil, errMalformed
	}
	t := newTurn(turnID{d.text(), d.text()})
	t.fence = d.uint()
	for range d.count() {
		c := &entryOfCall{
			call:     d.text(),
			function: d.text(),
			state:    call.State(d.text()),
			attempt:  int(d.uint()),   //nolint:gosec // was an int
			handover: int(d.uint()),   //nolint:gosec // was an int
			claimed:  int64(d.uint()), //nolint:gosec // was an int64
			changed:  int64(d.uint()), //nolint:gosec // was an int64
			outcome:  d.text(),
			body:     d.text(),
		}
		if version >= 2 {
			c.history = []byte(d.text())
		}
		t.add(c)
	}
	return t, d.err()
}
