package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Selector says which sessions to list; a session has to match all of it. The
// zero value is every session of the project. It is an alias of an unnamed
// struct, so that the client need not know this package.
type Selector = struct {
	// AgentID is the id of a stored agent.
	AgentID string
	// Metadata are exact pairs.
	Metadata map[string]string
}

// Summary is a session as a list shows it.
type Summary = struct{ ID, Status string }

// Lister lists sessions.
type Lister interface {
	// List yields the sessions that match, newest first. An error, a *call.Refusal,
	// is yielded once, at the end.
	List(ctx context.Context, selector Selector) iter.Seq2[Summary, error]
}

// Attacher is told which sessions to watch.
type Attacher interface {
	// Attach watches sessions; those that are watched already are fine. An error
	// means that it has to be called again.
	Attach(ctx context.Context, ids ...string) error
	// Nudge asks to look at a session.
	Nudge(id, trigger string)
}

// Poll lists sessions again and again: it attaches those that are new and nudges
// those that wait. It is the backstop behind streams and webhooks, and the way
// to watch sessions that nobody names one by one.
type Poll struct {
	API Lister
	// Selectors are polled independently of each other.
	Selectors []Selector
	// Interval is the wait between two looks at one selector, spread by a quarter
	// of itself; failures double it, up to ten times. Defaults to 15 s.
	Interval time.Duration
	// MaxSessions bounds one look: older sessions than that are left alone.
	// Defaults to 10,000.
	MaxSessions int
	// Logger hears of failures, once per change. Defaults to no logging.
	Logger *slog.Logger
}

// attachChunk bounds one call of Attach.
const attachChunk = 500

// Run polls until ctx ends. Failed sessions are not attached: the API never runs
// them again.
func (p Poll) Run(ctx context.Context, to Attacher) {
	p.Interval = cmp.Or(p.Interval, 15*time.Second)
	p.MaxSessions = cmp.Or(p.MaxSessions, 10_000)
	p.Logger = cmp.Or(p.Logger, slog.New(slog.DiscardHandler))
	var selectors sync.WaitGroup
	for _, selector := range p.Selectors {
		selectors.Go(func() { p.follow(ctx, selector, to) })
	}
	selectors.Wait()
}

func (p Poll) follow(ctx context.Context, selector Selector, to Attacher) {
	seen := map[string]bool{} // the listed sessions that are attached, and whether they waited
	delays := newBackoff(p.Interval, 10*p.Interval)
	failing := ""
	for {
		err := p.look(ctx, selector, seen, to)
		if ctx.Err() != nil {
			return
		}
		delay := spread(p.Interval)
		if err == nil {
			delays.Reset()
		} else {
			delay = max(delays.NextBackOff(), retryAfter(err))
		}
		failing = p.report(ctx, selector, failing, err)
		if !sleep(ctx, delay) {
			return
		}
	}
}

// look lists once. What came before an error counts.
func (p Poll) look(ctx context.Context, selector Selector, seen map[string]bool, to Attacher) (err error) {
	listed, waits := map[string]bool{}, map[string]bool{}
	var fresh, waiting []string
	whole := true
	for s, failure := range p.API.List(ctx, selector) {
		if failure != nil {
			whole, err = false, failure
			break
		}
		if len(listed) == p.MaxSessions {
			whole = false
			break
		}
		if s.ID == "" || s.Status == "failed" || listed[s.ID] {
			continue
		}
		listed[s.ID] = true
		waits[s.ID] = s.Status == "requires_action"
		waited, known := seen[s.ID]
		// One that still waits is attached again: a store that lost its data has lost the
		// list of watched sessions too, and nobody else would notice.
		if !known || waits[s.ID] && waited {
			fresh = append(fresh, s.ID)
		}
		if known {
			seen[s.ID] = waits[s.ID]
		}
		if waits[s.ID] {
			waiting = append(waiting, s.ID)
		}
	}
	for chunk := range slices.Chunk(fresh, attachChunk) {
		if failure := to.Attach(ctx, chunk...); failure != nil {
			err = errors.Join(err, fmt.Errorf("attach sessions: %w", failure))
			break
		}
		for _, id := range chunk {
			seen[id] = waits[id]
		}
	}
	for _, id := range waiting {
		to.Nudge(id, TriggerListed)
	}
	if whole { // what is listed no more was deleted, or will come back as new
		for id := range seen {
			if !listed[id] {
				delete(seen, id)
			}
		}
	}
	return err
}

// report logs when what fails changes, and returns what fails now.
func (p Poll) report(ctx context.Context, selector Selector, before string, err error) (now string) {
	now = kind(err)
	switch now {
	case before:
	case "":
		p.Logger.InfoContext(ctx, "sessions are listed again", "agent_id", selector.AgentID, "metadata", selector.Metadata)
	default:
		p.Logger.WarnContext(ctx, "cannot list sessions; trying again", "agent_id", selector.AgentID, "metadata", selector.Metadata, "error", err)
	}
	return now
}

// kind tells failures apart without what differs from one to the next, such as
// port numbers. It is empty for nil.
func kind(err error) string {
	if err == nil {
		return ""
	}
	if r, ok := errors.AsType[*call.Refusal](err); ok {
		return fmt.Sprintf("%s %d %s", r.Class, r.Status, r.Code)
	}
	return err.Error()
}

func retryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*call.Refusal](err); ok {
		return spread(r.RetryAfter)
	}
	return 0
}
