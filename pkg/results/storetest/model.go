package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// testModel runs random requests against a store and against a model of the
// contract in memory: every answer must be the same, and what the store knows
// must at no time break the invariants of calls.
func testModel(t *testing.T, b backend) {
	s := b.store(t)
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		m := &machine{
			store: s, model: model{turns: map[[2]string]*modelTurn{}},
			sessions: []string{fmt.Sprintf("a{%d}", runs), fmt.Sprintf("b/%d", runs)},
			previous: map[call.Key]results.Record{}, first: map[call.Key]call.Result{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"claim":    m.claim,
			"complete": m.complete,
			"move":     m.move,
			"":         m.check,
		})
	})
}

// machine draws requests and compares answers.
type machine struct {
	store    results.Store
	model    model
	sessions []string

	previous map[call.Key]results.Record // what was known before the last request
	first    map[call.Key]call.Result    // the first result seen of each call
}

var (
	smallFence = rapid.Uint64Range(0, 4)
	smallCount = rapid.IntRange(0, 2)
	smallNote  = rapid.SampledFrom([]string{"", "", "a", "b c", "s0.0.0 "})
)

func (m *machine) key(t *rapid.T, session string) call.Key {
	return call.Key{
		Session: session,
		Turn:    rapid.SampledFrom([]string{"t1", "t2"}).Draw(t, "turn"),
		Call:    rapid.SampledFrom([]string{"c1", "c2", "c3"}).Draw(t, "call"),
	}
}

func (m *machine) session(t *rapid.T) string { return rapid.SampledFrom(m.sessions).Draw(t, "session") }

func (m *machine) claim(t *rapid.T) {
	session, fence := m.session(t), smallFence.Draw(t, "fence")
	claims := make([]results.Claim, rapid.IntRange(1, 4).Draw(t, "size"))
	for i := range claims {
		claims[i] = results.Claim{
			Key:      m.key(t, session),
			Function: rapid.SampledFrom([]string{"f", "g.h", ""}).Draw(t, "function"),
			State:    rapid.SampledFrom([]call.State{call.Seen, call.Held}).Draw(t, "state"),
		}
	}
	want, wantErr := m.model.claim(fence, claims)
	got, err := m.store.Claim(context.Background(), fence, claims)
	if wantErr != nil {
		require.ErrorIs(t, err, wantErr)
		return
	}
	require.NoError(t, err)
	require.Equal(t, want, timeless(got))
}

func (m *machine) complete(t *rapid.T) {
	size := rapid.IntRange(1, 4).Draw(t, "size")
	fences, completions := make([]uint64, size), make([]results.Completion, size)
	fence := smallFence.Draw(t, "fence")
	for i := range completions {
		outcome := rapid.SampledFrom([]string{"o1", "o2", "o3"}).Draw(t, "outcome")
		fences[i] = fence
		completions[i] = results.Completion{
			Key: m.key(t, m.session(t)), Function: "f", OutcomeID: outcome, Attempt: smallCount.Draw(t, "attempt"),
			Adopt: rapid.Bool().Draw(t, "adopt"), Note: smallNote.Draw(t, "note"),
			Result: call.Result{
				Success: rapid.Bool().Draw(t, "success"), Reason: outcome,
				Error: string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "error")),
			},
		}
	}
	want := m.model.complete(fences, completions)
	got, err := m.store.Complete(context.Background(), fences, completions)
	require.NoError(t, err)
	for i := range got {
		got[i].Record = timeless([]results.Record{got[i].Record})[0]
	}
	require.Equal(t, want, got)
}

func (m *machine) move(t *rapid.T) {
	fence := smallFence.Draw(t, "fence")
	moves := make([]results.Move, rapid.IntRange(1, 4).Draw(t, "size"))
	for i := range moves {
		moves[i] = results.Move{
			Key: m.key(t, m.session(t)), To: rapid.SampledFrom(call.States()[1:]).Draw(t, "to"),
			Attempt: smallCount.Draw(t, "attempt"), Handover: smallCount.Draw(t, "handover"),
			Note: smallNote.Draw(t, "note"),
		}
	}
	want := m.model.move(fence, moves)
	got, err := m.store.Move(context.Background(), fence, moves)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// check reads everything back and holds the invariants, which it knows from the
// transitions alone and not from the model.
func (m *machine) check(t *rapid.T) {
	for _, session := range m.sessions {
		records, err := m.store.Session(context.Background(), session)
		require.NoError(t, err)
		require.ElementsMatch(t, m.model.session(session), timeless(slices.Clone(records)))
		for _, r := range records {
			before := m.previous[r.Key]
			require.True(t, reachable(before.State, r.State), "%s went from %q to %q", r.Key, before.State, r.State)
			if before.State != call.Absent {
				require.Equal(t, before.ClaimedAt, r.ClaimedAt)
			}
			if before.OutcomeID != "" {
				require.Equal(t, before.OutcomeID, r.OutcomeID, "the outcome was replaced")
			}
			require.Equal(t, r.State.Saved(), r.Result != nil)
			if r.Result != nil {
				if first, ok := m.first[r.Key]; ok {
					require.Equal(t, first, *r.Result, "the result was replaced")
				}
				m.first[r.Key] = *r.Result
			}
			require.True(t, grown(before.History, r.History), "the history was rewritten")
			m.previous[r.Key] = r
		}
	}
}

// grown says that a history begins with the other one and is in order.
func grown(before, after []results.Step) bool {
	inOrder := slices.IsSortedFunc(after, func(a, b results.Step) int { return a.At.Compare(b.At) })
	return inOrder && len(after) >= len(before) && slices.Equal(before, after[:len(before)])
}

// reachable says that allowed transitions lead from one state to the other.
func reachable(from, to call.State) bool {
	if from == to {
		return true
	}
	visited, ahead := map[call.State]bool{from: true}, []call.State{from}
	for len(ahead) > 0 {
		next := call.Transitions()[ahead[0]]
		ahead = ahead[1:]
		for _, state := range next {
			if state == to {
				return true
			}
			if !visited[state] {
				visited[state] = true
				ahead = append(ahead, state)
			}
		}
	}
	return false
}

// timeless removes what the store's clock decides.
func timeless(records []results.Record) []results.Record {
	for i := range records {
		records[i].Age, records[i].Since = 0, 0
		records[i].ClaimedAt = time.Time{}
		records[i].History = slices.Clone(records[i].History)
		for j := range records[i].History {
			records[i].History[j].At = time.Time{}
		}
	}
	return records
}
