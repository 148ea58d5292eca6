package dispatcher

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// steps collects transitions.
type steps struct {
	noObserver
	mu   sync.Mutex
	seen []Transition
}

func (o *steps) Transition(t Transition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, t)
}

// A publication whose answer is lost may have reached an executor, whose outcome then
// finds the call where the record has it.
func TestOutcomeOfAPublicationWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.function.Policy = call.Policy{Attempts: 3, Effects: call.EffectsNone}
		o := &steps{}
		b.run(t, Config{Observer: o}, func() {
			wait(time.Second)
			d := b.queue.dispatches()[0]
			b.queue.mu.Lock()
			b.queue.fail = errors.New("no answer")
			b.queue.mu.Unlock()
			for attempt := 1; attempt <= 2; attempt++ {
				d.Attempt, d.Nonce = attempt, b.d.nonces.For(d.Key, d.Function, attempt)
				b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Retry, Reason: "not now"}))
				wait(5 * time.Second)
			}
			require.Equal(t, call.Seen, b.store.state(d.Key))
		})
		for _, step := range o.seen {
			require.True(t, slices.Contains(call.Transitions()[step.From], step.To), "%q to %q", step.From, step.To)
		}
	})
}
