package dispatcher

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
)

// session is the goroutine that decides everything about one API session. Others
// hand it functions to run (post); whatever takes time (requests, publications,
// the store) runs beside it and posts its answer. So its state needs no lock, and
// a slow request holds up nothing else.
type session struct {
	p   *partition
	d   *Dispatcher
	id  string
	log *slog.Logger

	mu     sync.Mutex
	inbox  []func()
	closed bool
	wake   chan struct{}
	tasks  sync.WaitGroup
	// ctx ends with the session's goroutine.
	ctx context.Context
	end context.CancelFunc

	// All below belongs to the session's goroutine.

	watched    bool
	stopSource context.CancelFunc
	troubles   map[string]bool

	calls   map[call.Key]*tracked
	orphans map[call.Key]call.Delivered

	get    retrieval
	drift  drift
	out    posting
	moves  moveQueue
	claims claiming

	publishing bool
	auditing   bool
	completing int
	due        dueTimes
	// events counts what the API said, and orders it against GETs where clocks are
	// too coarse to.
	events int
}

// dueTimes are when the stages that go through all calls have to do so again. Zero
// means that nothing waits for the stage.
type dueTimes struct{ deadlines, publish, submit time.Time }

// retrieval is the state of the session's GETs.
type retrieval struct {
	running bool
	// due is when the next GET is wanted.
	due     time.Time
	backoff *backoff.ExponentialBackOff
	// unasked: the GET under way is the watchdog's; no event asked for it.
	unasked bool
	// done: there was a look since the session was loaded.
	done   bool
	status string
	at     time.Time
}

// claiming is the state of the session's claims.
type claiming struct {
	backoff *backoff.ExponentialBackOff
	// running counts the claims under way.
	running int
	// awaiting: the session is woken when the registered functions change.
	awaiting bool
}

func newSession(p *partition, id string) *session {
	s := &session{
		p: p, d: p.d, id: id,
		log:     p.d.log.With("session_id", id),
		wake:    make(chan struct{}, 1),
		calls:   map[call.Key]*tracked{},
		orphans: map[call.Key]call.Delivered{}, troubles: map[string]bool{},
	}
	s.ctx, s.end = context.WithCancel(p.ctx)
	s.get.backoff = delays(500*time.Millisecond, 30*time.Second)
	s.claims.backoff = delays(200*time.Millisecond, 5*time.Second)
	s.moves.backoff = delays(200*time.Millisecond, 5*time.Second)
	return s
}

// post has f run in the session's goroutine; false when the session has ended.
func (s *session) post(f func()) bool {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.inbox = append(s.inbox, f)
	s.mu.Unlock()
	signal(s.wake)
	return true
}

// close ends the session if nothing waits for it.
func (s *session) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.inbox) > 0 {
		return false
	}
	s.closed = true
	return true
}

// nudge asks to retrieve the session now.
func (s *session) nudge(trigger string) {
	s.post(func() {
		s.log.Debug("nudged", "trigger", trigger)
		s.wantGet(time.Now())
	})
}

// event numbers something that the API said. A GET with a larger number was asked
// after it.
func (s *session) event() int {
	s.events++
	return s.events
}

// async runs f beside the session's goroutine and then, in it, what f returns.
func (s *session) async(f func() func()) {
	s.tasks.Go(func() {
		if done := f(); done != nil {
			s.post(done)
		}
	})
}

func (s *session) run(ctx context.Context) {
	defer s.letGo()
	defer s.tasks.Wait()
	defer s.end()
	if !s.load(ctx) {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.drain()
			return
		case <-s.wake:
		case <-timer.C:
		}
		s.apply()
		next := s.step(ctx, time.Now())
		if s.idle() && s.p.forget(s) {
			return
		}
		timer.Reset(max(0, time.Until(next)))
	}
}

// apply runs what was posted.
func (s *session) apply() {
	s.mu.Lock()
	inbox := s.inbox
	s.inbox = nil
	s.mu.Unlock()
	for _, f := range inbox {
		f()
	}
}

// step starts whatever is due and returns when to look again at the latest.
func (s *session) step(ctx context.Context, now time.Time) time.Time {
	next := now.Add(time.Hour)
	for _, stage := range []func(context.Context, time.Time) time.Time{
		s.stepDeadlines, s.stepPublish, s.stepRetrieve, s.stepSubmit, s.stepMoves,
	} {
		if t := stage(ctx, now); !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	return next
}

// load reads what earlier owners recorded; false when ctx ended.
func (s *session) load(ctx context.Context) bool {
	delay := delays(200*time.Millisecond, 5*time.Second)
	for {
		recs, err := s.d.store.Session(ctx, s.id)
		if err == nil {
			now := time.Now()
			s.recovered(troubleStore)
			for _, r := range recs {
				if !r.State.Final() {
					t := &tracked{Call: call.Call{Key: r.Key, Function: r.Function}}
					s.calls[r.Key] = t
					s.adopt(t, r, now)
					if r.State == call.Seen {
						s.foundClaimed(t, now)
					}
				}
			}
			s.wantGet(now)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.fault(troubleStore, err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(delay.NextBackOff()):
		}
	}
}

// drain lets a graceful stop finish what is under way: the submission, and the
// hand-over of calls that were claimed, which the next owner would have to treat as
// calls that may have run.
func (s *session) drain() {
	if !s.p.graceful.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(s.p.work, s.d.cfg.StopTimeout)
	defer cancel()
	for {
		s.stepPublish(ctx, time.Now())
		if !s.out.running && !s.moves.running && !s.publishing && s.claims.running == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			s.apply()
		}
	}
	s.flushMoves(ctx)
}

// setWatched starts or ends the watching of the session.
func (s *session) setWatched(watched bool) {
	if watched == s.watched {
		return
	}
	s.watched = watched
	if !watched {
		if s.stopSource != nil {
			s.stopSource()
			s.stopSource = nil
		}
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.stopSource = cancel
	s.tasks.Go(func() { s.d.source.Watch(ctx, s.id, s.nudge) })
	s.wantGet(time.Now())
}

// idle says that nobody watches the session and nothing of it is unfinished.
func (s *session) idle() bool {
	return !s.watched && len(s.calls) == 0 && len(s.orphans) == 0 && !s.get.running &&
		!s.out.running && !s.publishing && s.completing == 0 && s.moves.empty()
}

// describe is what operators see of the session.
func (s *session) describe() SessionInfo {
	info := SessionInfo{
		ID: s.id, Partition: s.p.n, Watched: s.watched, Status: s.get.status,
		Retrieved: s.get.at, Trouble: strings.Join(slices.Sorted(maps.Keys(s.troubles)), "; "),
		Drift: s.drifted(),
	}
	for _, t := range s.calls {
		switch {
		case t.state == call.Parked:
			info.Parked++
		case t.state.Open():
			info.Open++
		case t.state.Saved():
			info.Saved++
		}
	}
	return info
}
