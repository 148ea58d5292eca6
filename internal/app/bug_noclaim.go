//go:build chaosbug_noclaim

package app

import (
	"context"
	"math/rand/v2"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// planted publishes calls that nobody claimed: there is no record of them, and no id by which the queue would know
// that they were published before.
func planted(parts dispatcher.Parts) dispatcher.Parts {
	parts.Store, parts.Queue = forgetfulStore{parts.Store}, forgetfulQueue{parts.Queue}
	return parts
}

type forgetfulStore struct{ dispatcher.Store }

// Claim answers without recording anything.
func (forgetfulStore) Claim(_ context.Context, _ uint64, claims []results.Claim) ([]results.Record, error) {
	recs := make([]results.Record, len(claims))
	for i, c := range claims {
		recs[i] = results.Record{Key: c.Key, Function: c.Function, State: c.State, Attempt: 1, Handover: 1}
	}
	return recs, nil
}

type forgetfulQueue struct{ dispatcher.Queue }

// Publish makes up the hand-over's number.
func (q forgetfulQueue) Publish(ctx context.Context, dispatches []call.Dispatch) []error {
	for i := range dispatches {
		dispatches[i].Handover = 1 + rand.IntN(1<<30) //nolint:gosec // a planted fault
	}
	return q.Queue.Publish(ctx, dispatches)
}
