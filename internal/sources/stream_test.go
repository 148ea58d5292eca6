package sources_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/pkg/call"
)

// script is a Subscriber that plays one step for each subscription and then stays
// open for ever.
type script struct {
	mu    sync.Mutex
	steps []step
	opens []time.Time
}

type step struct {
	refuse error // before the stream opens
	events []sources.Event
	life   time.Duration
	err    error // at its end
}

func (s *script) Stream(ctx context.Context, _ string, onOpen func(), onEvent func(sources.Event)) error {
	s.mu.Lock()
	s.opens = append(s.opens, time.Now())
	next := step{life: 1 << 62}
	if len(s.steps) > 0 {
		next, s.steps = s.steps[0], s.steps[1:]
	}
	s.mu.Unlock()
	if next.refuse != nil {
		return next.refuse
	}
	onOpen()
	for _, e := range next.events {
		onEvent(e)
	}
	select {
	case <-time.After(next.life):
		return next.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waits are the times between the subscriptions.
func (s *script) waits() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var waits []time.Duration
	for i := 1; i < len(s.opens); i++ {
		waits = append(waits, s.opens[i].Sub(s.opens[i-1]))
	}
	return waits
}

// watch runs Watch for a time and returns the nudges.
func watch(t *testing.T, api sources.Subscriber, cfg sources.StreamConfig, d time.Duration) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var nudges []string
	sources.NewStream(api, cfg).Watch(ctx, "sess_1", func(trigger string) { nudges = append(nudges, trigger) })
	return nudges
}

func event(kind string) sources.Event { return sources.Event{Type: "agent.session." + kind} }

func item(kind string) sources.Event {
	return sources.Event{Type: "agent.session.turn.item.added", Item: kind}
}

func TestStreamNudges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events []sources.Event
		want   []string
	}{
		"nothing":               {nil, nil},
		"status":                {[]sources.Event{event("requires_action"), event("in_progress"), event("idle"), event("failed")}, []string{"requires_action", "idle", "failed"}},
		"end of turns":          {[]sources.Event{event("turn.completed"), event("turn.failed"), event("turn.cancelled")}, []string{"turn_over", "turn_over", "turn_over"}},
		"text":                  {[]sources.Event{event("turn.output_text.delta"), event("turn.created"), {}, {Type: "brand.new"}}, nil},
		"call before its event": {[]sources.Event{event("in_progress"), item("function_call"), event("requires_action")}, []string{"requires_action"}},
		"call added later":      {[]sources.Event{event("requires_action"), item("function_call"), item("function_call_output"), item("message")}, []string{"requires_action", "call_added"}},
		"call, status unknown":  {[]sources.Event{item("function_call")}, []string{"call_added"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &script{steps: []step{{events: test.events, life: time.Hour}}}
				require.Equal(t, append([]string{"stream_open"}, test.want...), watch(t, api, sources.StreamConfig{}, time.Minute))
			})
		})
	}
}

func TestStreamComesBackAfterAnyEnd(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"closed":      nil,
		"cut":         &call.Refusal{Class: call.RefusedBusy, Err: errors.New("unexpected EOF")},
		"error frame": &call.Refusal{Class: call.RefusedBusy, Code: "stream_interrupted", Err: errors.New("slow")},
		"any error":   errors.New("what"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &script{steps: []step{{life: time.Minute, err: err}}}
				require.Equal(t, []string{"stream_open", "stream_lost", "stream_open"}, watch(t, api, sources.StreamConfig{}, time.Hour))
				require.InDelta(t, time.Minute+100*time.Millisecond, api.waits()[0], float64(50*time.Millisecond))
			})
		})
	}
}

func TestStreamBacksOffAndStartsAnewAfterALongLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := &call.Refusal{Class: call.RefusedBusy, Err: errors.New("no")}
		api := &script{}
		for range 12 {
			api.steps = append(api.steps, step{refuse: busy})
		}
		api.steps = append(api.steps, step{life: time.Second}, step{life: time.Minute})
		nudges := watch(t, api, sources.StreamConfig{}, time.Hour)
		require.Equal(t, []string{"stream_open", "stream_lost", "stream_open", "stream_lost", "stream_open"}, nudges,
			"a refused subscription loses nothing")
		waits := api.waits()
		for i, wait := range waits[:12] {
			nominal := min(100*time.Millisecond<<i, 30*time.Second)
			require.InDelta(t, nominal, wait, float64(nominal/2+2*time.Millisecond), "wait %d", i)
		}
		require.Greater(t, waits[12], 15*time.Second, "a stream that died at once is one more failure")
		require.Less(t, waits[13], time.Minute+200*time.Millisecond, "one that lived is the first")
	})
}

func TestStreamOfAMissingSessionIsRetriedSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := &call.Refusal{Class: call.RefusedGone, Status: 404, Err: errors.New("no such session")}
		api := &script{steps: []step{{refuse: gone}, {refuse: gone}}}
		require.Equal(t, []string{"gone", "gone", "stream_open"}, watch(t, api, sources.StreamConfig{}, time.Hour))
		for _, wait := range api.waits() {
			require.InDelta(t, 67*time.Second, wait, float64(8*time.Second))
		}
	})
}

func TestRetryAfterIsRespected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &call.Refusal{Class: call.RefusedBusy, Status: 429, RetryAfter: 300 * time.Second, Err: errors.New("slow down")}
		api := &script{steps: []step{{refuse: slow}}}
		watch(t, api, sources.StreamConfig{}, time.Hour)
		require.GreaterOrEqual(t, api.waits()[0], 300*time.Second)
	})
}

// crowd is a Subscriber with many sessions; opening takes a while.
type crowd struct {
	refuse                atomic.Pointer[call.Refusal]
	opening, most, opened atomic.Int64
	tries                 atomic.Int64
}

func (c *crowd) Stream(ctx context.Context, _ string, onOpen func(), _ func(sources.Event)) error {
	c.tries.Add(1)
	n := c.opening.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	select {
	case <-time.After(200 * time.Millisecond):
	case <-ctx.Done():
	}
	c.opening.Add(-1)
	if r := c.refuse.Load(); r != nil {
		return r
	}
	c.opened.Add(1)
	onOpen()
	<-ctx.Done()
	return ctx.Err()
}

func (c *crowd) watch(ctx context.Context, n int, cfg sources.StreamConfig) (wait func()) {
	source := sources.NewStream(c, cfg)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { source.Watch(ctx, fmt.Sprint("sess_", i), func(string) {}) })
	}
	return all.Wait
}

func TestTenThousandStreamsDoNotStampede(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var c crowd
		wait := c.watch(ctx, 10_000, sources.StreamConfig{MaxOpening: 50, OpenRate: 100})
		time.Sleep(10 * time.Second) //nolint:forbidigo // synctest's clock
		require.InDelta(t, 1000, c.opened.Load(), 50)
		time.Sleep(95 * time.Second) //nolint:forbidigo // synctest's clock
		require.EqualValues(t, 10_000, c.opened.Load())
		require.LessOrEqual(t, c.most.Load(), int64(50))
		cancel()
		wait()
	})
}

func TestSlowOpeningsAreLimitedToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var c crowd
		wait := c.watch(ctx, 1000, sources.StreamConfig{MaxOpening: 10, OpenRate: 1000})
		time.Sleep(5 * time.Second) //nolint:forbidigo // synctest's clock
		require.EqualValues(t, 10, c.most.Load())
		cancel()
		wait()
	})
}

func TestARefusedKeyIsSaidOnceForAllSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var c crowd
		var log logLines
		c.refuse.Store(&call.Refusal{Class: call.RefusedAuth, Status: 401, Err: errors.New("bad key")})
		wait := c.watch(ctx, 100, sources.StreamConfig{Logger: log.logger()})
		time.Sleep(10 * time.Minute) //nolint:forbidigo // synctest's clock
		require.Len(t, log.lines(), 1)
		require.Contains(t, log.lines()[0], "bad key")
		require.Less(t, c.tries.Load(), int64(100*11), "a refused key is retried slowly")

		c.refuse.Store(nil)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // synctest's clock
		require.EqualValues(t, 100, c.opened.Load())
		cancel()
		wait()
		require.Len(t, log.lines(), 1)
	})
}

func TestAPauseThatTheAPIAsksForHoldsAllSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var c crowd
		c.refuse.Store(&call.Refusal{Class: call.RefusedBusy, Status: 429, RetryAfter: 30 * time.Second, Err: errors.New("slow down")})
		wait := c.watch(ctx, 1000, sources.StreamConfig{MaxOpening: 10})
		time.Sleep(29 * time.Second) //nolint:forbidigo // synctest's clock
		require.LessOrEqual(t, c.tries.Load(), int64(20))
		cancel()
		wait()
	})
}
