// Package results declares the durable memory of calls: what was claimed, which
// result was saved, what the API accepted, who owns which partition.
//
// Two implementations pass one conformance suite (package storetest):
// redisstore for production and kvstore, on JetStream, for embedded and small
// installations. The store is a join and an index, never the only copy: an
// outcome message stays in its stream until the API applied the result, and the
// session's required actions stand above both.
package results

import (
	"context"
	"errors"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// ErrFenced is returned by writes under a fence that is older than one already
// seen for the same turn: another dispatcher owns the partition now. Nothing of
// the refused element was written; the caller must stop acting for the partition.
var ErrFenced = errors.New("fenced: another dispatcher owns the partition")

// ErrFull is returned when the store has no memory left. Nothing was written;
// try again later, and claim nothing new meanwhile.
var ErrFull = errors.New("the results store is full")

// Record is what the store knows of one call.
type Record struct {
	Key      call.Key
	Function string
	State    call.State
	// Attempt and Handover are those of the latest publication, both from 1; 0
	// before a Move set them.
	Attempt, Handover int
	// ClaimedAt is the store's clock at the claim, to the millisecond.
	ClaimedAt time.Time
	// OutcomeID identifies the outcome that was saved; empty before.
	OutcomeID string
	// Result is the saved result. Nil before there is one, and after the call's
	// end, when the store drops bodies.
	Result *call.Result
	// History are the call's steps, the oldest first, each step of a state, attempt or
	// hand-over with its note. Only Get and Session set it. Of a long history the middle
	// is left out.
	History []Step
	// Age is the time since the claim, Since the time since the last change of
	// state, attempt or hand-over, both by the store's clock.
	Age, Since time.Duration
}

// Step is one step in a call's life.
type Step struct {
	// At is the store's clock, to the millisecond.
	At    time.Time
	State call.State
	// Attempt and Handover are those that the step left in the record.
	Attempt, Handover int
	// Note is what the dispatcher noted about it; empty when there was nothing to note.
	Note string
}

// MaxNote is how many bytes of a note are kept. Line breaks in notes become spaces.
const MaxNote = 200

// Claim asks to record a call that required actions list. A call that is claimed
// again keeps its record, whatever Function and State say.
type Claim struct {
	Key      call.Key
	Function string
	// State is call.Seen or call.Held.
	State call.State
}

// Completion saves the result of a call.
type Completion struct {
	Key      call.Key
	Function string
	Result   call.Result
	// OutcomeID identifies the outcome (its message id, or a word for a result
	// that the dispatcher made). Saving the same OutcomeID again is a replay. An
	// empty one is never a replay, so always set it.
	OutcomeID string
	// Attempt is the attempt that it answers; kept when Adopt makes the record,
	// whose hand-over is then 0: unknown.
	Attempt int
	// Note goes into the call's history, when this completion saves the result.
	Note string
	// Adopt makes the record when the call is unknown: for a store that lost it.
	Adopt bool
}

// Verdict says what became of a Completion.
type Verdict int

// The verdicts.
const (
	// Saved: this result is the call's result, by this completion or by an earlier
	// one with the same OutcomeID.
	Saved Verdict = iota + 1
	// Superseded: the call had a result or had ended; this one was not kept.
	Superseded
	// Unknown: the call has no record and Adopt was not set; nothing was written.
	Unknown
)

// Completed answers a Completion.
type Completed struct {
	Verdict Verdict
	// Record is the call after the completion; its Result is only set when the
	// verdict is Superseded and the body is still kept. Zero for Unknown.
	Record Record
	// Err is ErrFenced when this element was refused; the others were done.
	Err error
}

// Move asks for a change of state that saves no result.
type Move struct {
	Key call.Key
	// To is the wanted state; the move is made only from a state in To.From().
	// Two kinds of transitions are not moves, and a Move that asks for one is
	// simply not done: those out of call.Absent belong to Claim and Adopt, those to
	// call.Succeeded and call.Failed to Complete.
	To call.State
	// Attempt and Handover, when not zero, replace the record's.
	Attempt, Handover int
	// Note goes into the call's history. A move to the state, attempt and hand-over that
	// the call has already adds a step of its own when its note differs from the latest
	// step's; this is how something is noted without a change of state.
	Note string
}

// Moved answers a Move.
type Moved struct {
	// Done: the call is in the wanted state (and attempt and hand-over), by this
	// move or by an earlier identical one.
	Done bool
	// State is the call's state after the move.
	State call.State
	// Err is ErrFenced when this element was refused; the others were done.
	Err error
}

// Lease is the ownership of one partition for a time.
type Lease struct {
	Partition int
	// Fence grows with every change of owner, also over a loss of the store.
	Fence uint64
	// Left is how long the lease holds, counted by the store's clock at the answer.
	Left time.Duration
}

// NeverWritten is the version of a list that the store does not have.
const NeverWritten = "0"

// Store is the durable memory of calls. All methods are safe for concurrent use,
// replay-safe (repeating a call whose answer was lost changes nothing and gives
// the same answer), and batch what they get into as few round trips as possible.
// Slices of answers have the order and length of the questions.
//
// An error of the method itself means that any part of it may have been done.
type Store interface {
	// Claim records calls that are absent and answers the record of each, new or
	// not. All calls belong to one session. Results of saved calls are included. The
	// error is ErrFenced when a turn refused the fence; other turns were recorded.
	Claim(ctx context.Context, fence uint64, claims []Claim) ([]Record, error)
	// Complete saves results; the first one saved for a call wins for ever. fences
	// holds the fence to write under for each completion.
	Complete(ctx context.Context, fences []uint64, completions []Completion) ([]Completed, error)
	// Move changes states. A request holds at most one move of a call: two are made
	// one after the other, and that is not replay-safe. Entering a final state drops
	// the result's body; when no call of a turn is left open or saved, the turn's
	// markers live on for the retention, and longer while Claim still asks for them.
	Move(ctx context.Context, fence uint64, moves []Move) ([]Moved, error)
	// Get reads records, with results; an unknown call has the state call.Absent.
	Get(ctx context.Context, keys []call.Key) ([]Record, error)
	// Session reads all records of a session that are not yet forgotten, with results.
	Session(ctx context.Context, session string) ([]Record, error)
	// Unfinished calls each for every session that has calls that have not ended, once
	// each; for sweeps and operators' lists, not for the path of a call: its cost is a
	// walk through the whole store. Sessions that change meanwhile may or may not be
	// among them. An error of each ends it and is returned.
	Unfinished(ctx context.Context, each func(session string) error) error

	// Attach adds sessions to those that are watched; Detach removes them. Both
	// are idempotent.
	Attach(ctx context.Context, sessions ...string) error
	Detach(ctx context.Context, sessions ...string) error
	// Attached lists the watched sessions of the partitions, and a version that
	// changes with the list. When the version is still since, sessions is nil. A list
	// that was never written, or was lost, has the version NeverWritten.
	Attached(ctx context.Context, partition int, since string) (sessions []string, version string, err error)

	// Join announces a dispatcher for ttl and lists those announced, sorted,
	// itself included. Leave withdraws it.
	Join(ctx context.Context, member string, ttl time.Duration) (members []string, err error)
	Leave(ctx context.Context, member string) error
	// Acquire takes or renews the partitions for owner and answers the leases that
	// it now holds; partitions held by others are missing from the answer.
	Acquire(ctx context.Context, owner string, partitions []int, ttl time.Duration) ([]Lease, error)
	// Release gives partitions up at once; those not held are ignored.
	Release(ctx context.Context, owner string, partitions []int) error

	// Ping says whether the store can be used now.
	Ping(ctx context.Context) error
	// Close ends the store's goroutines and connections that it opened.
	Close() error
}

// DefaultRetention is how long the markers of an ended turn are kept.
const DefaultRetention = time.Hour

// DefaultPartitions is the number of partitions of an installation. Stores and
// dispatchers of one installation must agree on it: it decides to which
// partition an attached session belongs.
const DefaultPartitions = 64
