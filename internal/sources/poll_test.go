package sources_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/pkg/call"
)

// catalog is a Lister whose list the test sets.
type catalog struct {
	mu    sync.Mutex
	list  []sources.Summary
	err   error
	looks int
}

func (c *catalog) set(err error, list ...sources.Summary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.list = err, list
}

func (c *catalog) List(_ context.Context, _ sources.Selector) iter.Seq2[sources.Summary, error] {
	return func(yield func(sources.Summary, error) bool) {
		c.mu.Lock()
		list, err := c.list, c.err
		c.looks++
		c.mu.Unlock()
		for _, s := range list {
			if !yield(s, nil) {
				return
			}
		}
		if err != nil {
			yield(sources.Summary{}, err)
		}
	}
}

// poll runs p in a bubble of synctest; look lets one more look happen.
func poll(t *testing.T, p sources.Poll, body func(look func() []string, to *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		to := &recorder{}
		var running sync.WaitGroup
		running.Go(func() { p.Run(ctx, to) })
		synctest.Wait()
		first := true
		body(func() []string {
			if !first {
				time.Sleep(19 * time.Second) //nolint:forbidigo // synctest's clock; 15 s and up to a quarter more
			}
			first = false
			synctest.Wait()
			return to.take()
		}, to)
		cancel()
		running.Wait()
	})
}

func TestPollAttachesOnceAndNudgesTheWaiting(t *testing.T) {
	t.Parallel()
	api := &catalog{}
	api.set(nil, sources.Summary{ID: "a", Status: "requires_action"}, sources.Summary{ID: "b", Status: "idle"},
		sources.Summary{ID: "c", Status: "failed"}, sources.Summary{ID: "a", Status: "requires_action"})
	poll(t, sources.Poll{API: api, Selectors: make([]sources.Selector, 1)}, func(look func() []string, _ *recorder) {
		require.Equal(t, []string{"attach a b", "nudge a listed"}, look())
		require.Equal(t, []string{"attach a", "nudge a listed"}, look(), "it still waits: perhaps it is watched no more")
		api.set(nil, sources.Summary{ID: "b", Status: "requires_action"}, sources.Summary{ID: "d", Status: "in_progress"})
		require.Equal(t, []string{"attach d", "nudge b listed"}, look())
		api.set(nil, sources.Summary{ID: "a", Status: "idle"})
		require.Equal(t, []string{"attach a"}, look(), "a session that left the list comes back as new")
	})
}

// A store that was emptied has lost the list of watched sessions.
func TestPollAttachesAgainWhatStillWaits(t *testing.T) {
	t.Parallel()
	api := &catalog{}
	api.set(nil, sources.Summary{ID: "a", Status: "requires_action"}, sources.Summary{ID: "b", Status: "idle"})
	poll(t, sources.Poll{API: api, Selectors: []sources.Selector{{}}}, func(look func() []string, _ *recorder) {
		require.Contains(t, look(), "attach a b")
		require.Contains(t, look(), "attach a")
		api.set(nil, sources.Summary{ID: "a", Status: "idle"}, sources.Summary{ID: "b", Status: "requires_action"})
		require.Equal(t, []string{"nudge b listed"}, look())
		require.Contains(t, look(), "attach b")
	})
}

func TestPollFailuresAreSaidOncePerChange(t *testing.T) {
	t.Parallel()
	api := &catalog{}
	var log logLines
	busy := &call.Refusal{Class: call.RefusedBusy, Status: 503, Err: errors.New("overloaded")}
	api.set(busy, sources.Summary{ID: "a", Status: "idle"})
	p := sources.Poll{API: api, Selectors: make([]sources.Selector, 1), Logger: log.logger()}
	poll(t, p, func(look func() []string, _ *recorder) {
		require.Equal(t, []string{"attach a"}, look(), "what came before the error counts")
		time.Sleep(10 * time.Minute) //nolint:forbidigo // synctest's clock
		require.Empty(t, look())
		require.Less(t, api.looks, 15, "failures are backed off")
		require.Len(t, log.lines(), 1)
		api.set(&call.Refusal{Class: call.RefusedAuth, Status: 401, Err: errors.New("bad key")})
		time.Sleep(10 * time.Minute) //nolint:forbidigo // synctest's clock
		require.Len(t, log.lines(), 2)
		api.set(nil, sources.Summary{ID: "a", Status: "idle"})
		time.Sleep(10 * time.Minute) //nolint:forbidigo // synctest's clock
		require.Empty(t, look(), "an incomplete list makes nothing forgotten")
		require.Len(t, log.lines(), 3)
		require.Contains(t, log.lines()[2], "listed again")
	})
}

func TestPollAttachesAgainWhatCouldNotBeAttached(t *testing.T) {
	t.Parallel()
	api := &catalog{}
	poll(t, sources.Poll{API: api, Selectors: make([]sources.Selector, 1)}, func(look func() []string, to *recorder) {
		require.Empty(t, look())
		api.set(nil, sources.Summary{ID: "a", Status: "idle"})
		to.failing(errors.New("the store is away"))
		require.Equal(t, []string{"attach a"}, look())
		to.failing(nil)
		time.Sleep(time.Minute) //nolint:forbidigo // synctest's clock
		require.Equal(t, []string{"attach a"}, look())
	})
}

func TestPollLooksAtTheNewestOnly(t *testing.T) {
	t.Parallel()
	api := &catalog{}
	api.set(nil, sources.Summary{ID: "c", Status: "idle"}, sources.Summary{ID: "b", Status: "idle"}, sources.Summary{ID: "a", Status: "idle"})
	poll(t, sources.Poll{API: api, Selectors: make([]sources.Selector, 1), MaxSessions: 2}, func(look func() []string, _ *recorder) {
		require.Equal(t, []string{"attach c b"}, look())
		require.Empty(t, look())
	})
}

func TestPollWithoutSelectorsEnds(t *testing.T) {
	t.Parallel()
	sources.Poll{}.Run(t.Context(), &recorder{})
}
