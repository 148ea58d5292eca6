// Package storetest is the conformance suite of results stores: every
// implementation passes it, and what it does not check is not promised.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// Options says which store a test wants.
type Options struct {
	// Namespace separates the data of tests: stores of one namespace share their
	// data like dispatchers of one installation. It is [a-z0-9]+.
	Namespace string
	// Retention is how long the store keeps ended turns; zero is its default.
	Retention time.Duration
}

// Open opens a store for a test. The suite closes it.
type Open func(t testing.TB, options Options) results.Store

// Run checks the whole contract of results.Store against the stores that open
// makes. The stores must accept results of 4 MiB.
func Run(t *testing.T, open Open) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, backend)
	}{
		{"Claim", testClaim},
		{"Complete", testComplete},
		{"Move", testMove},
		{"History", testHistory},
		{"Read", testRead},
		{"Unfinished", testUnfinished},
		{"Fence", testFence},
		{"Bytes", testBytes},
		{"Retention", testRetention},
		{"Attached", testAttached},
		{"Lease", testLease},
		{"Members", testMembers},
		{"Requests", testRequests},
		{"Model", testModel},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(t, backend{open})
		})
	}
}

// backend opens the stores of the tests.
type backend struct{ open Open }

var namespaces atomic.Int64

func namespace() string { return fmt.Sprintf("n%d", namespaces.Add(1)) }

// store is a store with no data.
func (b backend) store(t testing.TB) results.Store {
	return b.with(t, Options{Namespace: namespace()})
}

// pair is two stores on the same data.
func (b backend) pair(t testing.TB) (one, two results.Store) {
	o := Options{Namespace: namespace()}
	return b.with(t, o), b.with(t, o)
}

func (b backend) with(t testing.TB, o Options) results.Store {
	s := b.open(t, o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// run starts the named subtests in parallel, each with a fresh store.
func (b backend) run(t *testing.T, tests map[string]func(*testing.T, results.Store)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b.store(t))
		})
	}
}

// patience bounds every wait of the suite.
const patience = 20 * time.Second

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// The calls of the tests: one session and turn unless a test needs more.
const (
	session = "sess_1"
	turn    = "turn_1"
)

func key(id string) call.Key { return call.Key{Session: session, Turn: turn, Call: id} }

func seen(id string) results.Claim {
	return results.Claim{Key: key(id), Function: "get_weather", State: call.Seen}
}

func success(output string) call.Result {
	return call.Result{Success: true, Output: json.RawMessage(output), Reason: call.ReasonHandler}
}

func failure(text string) call.Result {
	return call.Result{Error: text, Reason: call.ReasonTimeout}
}

func completion(id, outcome string, r call.Result) results.Completion {
	return results.Completion{Key: key(id), Function: "get_weather", Result: r, OutcomeID: outcome, Attempt: 1}
}

// claim claims calls as Seen under the fence.
func claim(t testing.TB, s results.Store, fence uint64, ids ...string) []results.Record {
	t.Helper()
	claims := make([]results.Claim, len(ids))
	for i, id := range ids {
		claims[i] = seen(id)
	}
	records, err := s.Claim(deadline(t), fence, claims)
	require.NoError(t, err)
	require.Len(t, records, len(ids))
	return records
}

// complete saves one result under the fence.
func complete(t testing.TB, s results.Store, fence uint64, c results.Completion) results.Completed {
	t.Helper()
	answers, err := s.Complete(deadline(t), []uint64{fence}, []results.Completion{c})
	require.NoError(t, err)
	require.Len(t, answers, 1)
	return answers[0]
}

// save saves a success and expects it to be the call's result.
func save(t testing.TB, s results.Store, fence uint64, id, outcome, output string) {
	t.Helper()
	answer := complete(t, s, fence, completion(id, outcome, success(output)))
	require.NoError(t, answer.Err)
	require.Equal(t, results.Saved, answer.Verdict)
}

// move makes one move under the fence.
func move(t testing.TB, s results.Store, fence uint64, m results.Move) results.Moved {
	t.Helper()
	answers, err := s.Move(deadline(t), fence, []results.Move{m})
	require.NoError(t, err)
	require.Len(t, answers, 1)
	return answers[0]
}

// enter moves a call and expects it to get there.
func enter(t testing.TB, s results.Store, fence uint64, id string, to call.State) {
	t.Helper()
	require.Equal(t, results.Moved{Done: true, State: to}, move(t, s, fence, results.Move{Key: key(id), To: to}))
}

func get(t testing.TB, s results.Store, k call.Key) results.Record {
	t.Helper()
	records, err := s.Get(deadline(t), []call.Key{k})
	require.NoError(t, err)
	require.Len(t, records, 1)
	return records[0]
}

// still is a record without what time alone changes.
func still(r results.Record) results.Record {
	r.Age, r.Since = 0, 0
	return r
}

// abridged shortens a text for failure messages.
func abridged(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
