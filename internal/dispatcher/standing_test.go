package dispatcher

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// A delivery that comes again runs only when nothing else of its call does or will.
func TestStandingOfADeliveryThatComesAgain(t *testing.T) {
	t.Parallel()
	key := call.Key{Session: "s", Turn: "t", Call: "c"}
	secret := []byte("0123456789abcdef")
	nonce := func(attempt int) string { return call.NewNonces(secret).For(key, "f", attempt) }
	for name, tt := range map[string]struct {
		state             call.State
		attempt, handover int // on record
		asked             int // the attempt that is asked about
		askedHandover     int
		nonce             string
		want              call.Standing
	}{
		"the only hand-over":           {state: call.Seen, asked: 1, askedHandover: 1, want: call.StandingPending},
		"the latest attempt":           {state: call.Queued, attempt: 2, handover: 1, asked: 2, askedHandover: 1, want: call.StandingPending},
		"an earlier attempt":           {state: call.Queued, attempt: 2, handover: 1, asked: 1, askedHandover: 1, want: call.StandingAnswered},
		"a failed attempt":             {state: call.Retrying, attempt: 1, handover: 1, asked: 1, askedHandover: 1, want: call.StandingAnswered},
		"an earlier hand-over":         {state: call.Seen, attempt: 1, handover: 2, asked: 1, askedHandover: 1, want: call.StandingAnswered},
		"the latest hand-over":         {state: call.Seen, attempt: 1, handover: 2, asked: 1, askedHandover: 2, want: call.StandingPending},
		"a hand-over that is not told": {state: call.Seen, attempt: 1, handover: 2, asked: 1, want: call.StandingPending},
		"parked":                       {state: call.Parked, attempt: 1, handover: 1, asked: 1, askedHandover: 1, want: call.StandingAnswered},
		"a nonce of somebody else's":   {state: call.Queued, attempt: 2, handover: 1, nonce: "1-x", want: call.StandingPending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			store.records[key] = &results.Record{Key: key, Function: "f", State: tt.state, Attempt: tt.attempt, Handover: tt.handover}
			d, err := New(Config{Name: "one", Secret: secret}, Parts{
				API: &fakeAPI{}, Queue: newFakeQueue(nil), Store: store, Functions: knows{},
			})
			require.NoError(t, err)
			q := call.Question{Key: key, Token: "f", Nonce: tt.nonce, Handover: tt.askedHandover}
			if tt.asked > 0 {
				q.Nonce = nonce(tt.asked)
			}
			got, err := d.Standing(context.Background(), q)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}
