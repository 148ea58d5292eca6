package property_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// A check that cannot fail proves nothing: each of these worlds has a fault of the kind
// that the rules are there for, and a script that runs into it.

const ms = time.Millisecond

func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	open := stores(t)["redis"]
	for name, planted := range map[string]struct {
		script script
		plant  func(w *world)
		finds  string
	}{
		"a careless executor": {
			script: script{{op: opList, calls: []plan{{function: pays, fates: []fate{diesLate}}}}},
			plant:  func(w *world) { w.pool.careless = true },
			finds:  "is run again",
		},
		"a verify handler that nobody asks": {
			script: script{{op: opList, calls: []plan{{function: books, fates: []fate{diesLate}}}}},
			plant:  func(w *world) { w.pool.careless = true },
			finds:  "took effect 2 times",
		},
		"an operator whom nobody waits for": {
			script: script{{op: opList, calls: []plan{{function: parks, fates: []fate{diesEarly}}}}},
			plant:  func(w *world) { w.pool.careless = true },
			finds:  "without an operator's decision",
		},
		"a store that replaces results": {
			script: script{{op: opList, calls: []plan{{function: reads, fates: []fate{stallsLate, fails}, work: 100 * ms}}}, {op: opNothing, after: 400 * ms}},
			plant:  func(w *world) { w.store = recorder{&overwriting{Store: w.store.(recorder).Store}, w.check} },
			finds:  "is replaced by",
		},
		"a store that is late": {
			script: script{{op: opList, calls: []plan{{function: keyed, fates: []fate{diesReported}}}}, {op: opNothing, after: 400 * ms}},
			plant:  func(w *world) { w.settleWithin = time.Second; w.store = forgetful{w.store} },
			finds:  "is over, and a lookup says",
		},
		"an API that forgets": {
			script: script{{op: opList, calls: []plan{{function: reads}}}},
			plant:  func(w *world) { w.settleWithin = time.Second; w.api.deaf = true },
			finds:  "is not answered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			w := newWorld(store)
			planted.plant(w)
			broken := strings.Join(w.run(planted.script), "\n")
			require.NoError(t, store.Close())
			require.Contains(t, broken, planted.finds, "account:\n%s", w.account())
		})
	}
}

// overwriting keeps the latest result, and says that it is the first.
type overwriting struct{ results.Store }

func (s *overwriting) Complete(ctx context.Context, fences []uint64, cs []results.Completion) ([]results.Completed, error) {
	done, err := s.Store.Complete(ctx, fences, cs)
	for i := range done {
		if done[i].Verdict == results.Superseded {
			done[i].Verdict = results.Saved
			done[i].Record.OutcomeID = cs[i].OutcomeID
		}
	}
	return done, err
}

// forgetful reads from a replica that never hears of anything but claims.
type forgetful struct{ results.Store }

func (s forgetful) Get(ctx context.Context, keys []call.Key) ([]results.Record, error) {
	recs, err := s.Store.Get(ctx, keys)
	for i := range recs {
		recs[i].State, recs[i].Result = call.Seen, nil
	}
	return recs, err
}
