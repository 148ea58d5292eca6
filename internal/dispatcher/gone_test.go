package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestAcceptedResultOfAGoneSessionIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(2)}, store: newMemory("s")}
		b.queue = newFakeQueue(func(d call.Dispatch) (call.Outcome, bool) {
			o, _ := succeed(d)
			return o, d.Key.Call == "c0"
		})
		b.api.lose = func() bool { return true } // accepted, and listed on
		b.run(t, Config{}, func() {
			wait(time.Second)
			require.Equal(t, call.Submitted, b.store.state(listedCalls(2)[0].Key))
			b.api.mu.Lock()
			b.api.gone = true
			b.api.mu.Unlock()
			b.d.Nudge("s", "test")
			wait(time.Second)
			require.Equal(t, call.Settled, b.store.state(listedCalls(2)[0].Key))
			require.Equal(t, call.Cancelled, b.store.state(listedCalls(2)[1].Key))
		})
	})
}
