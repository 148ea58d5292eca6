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
	status  string
	at      time.Time
}

// claiming is the state of the session's claims.
type claiming struct {
	backoff *backoff.ExponentialBackOff
	// running counts the claims under way.
	running int
	// awaiting: the session is woken when the registered functions change.
	awaiting bool
}

// tracked is what the session knows of one call that has not ended.
type tracked struct {
	call.Call
	state             call.State
	attempt, handover int
	claimed           time.Time

	// listed: a GET showed the call, so its arguments are known.
	listed bool
	// doubted: a GET has to show the call before its result is sent.
	doubted bool
	// missing is when a GET first failed to show it.
	missing time.Time
	// busy: the store is being asked about it.
	busy bool
	// releases are the acks of outcomes that gave the call back, due when the next
	// hand-over is on record.
	releases []func()

	// registered and policy are those of the function at the last look.
	registered bool
	policy     call.Policy
	// deadline is when the session stops waiting for an outcome.
	deadline time.Time
	// begun is what the total deadline counts from: the claim, or the decision to run a
	// parked call again.
	begun time.Time

	// tried is when the current hand-over may first have been published.
	tried     time.Time
	published bool
	uncertain bool
	// sequence is the current hand-over's number in the queue, 0 when it is not known;
	// taken says that an executor may have it.
	sequence uint64
	taken    bool
	// gone: the current hand-over is over, and its outcome did not come yet.
	gone      bool
	publishAt time.Time
	backoff   *backoff.ExponentialBackOff
	deferred  bool

	result     *call.Result
	outcomeID  string
	substitute *call.Result
	// note goes into the history with the next step.
	note string
	// answers are what the API said to submissions with this result, since the last note.
	answers []string
	savedAt time.Time
	acks    []func()

	inBatch  bool
	alone    bool
	retryAt  time.Time
	refusals int
	unknown  bool
	accepted time.Time
	// acceptedAs is the number of that event.
	acceptedAs int
	resends    int
	resendNow  bool
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
						// Nobody knows whether its owner published it. If it was run and acked, its
						// outcome comes when the dead owner's hold on it ends, and a server that was
						// restarted meanwhile would not recognise the hand-over any more: wait for
						// the outcome before handing over again (ADR 0014).
						t.publishAt = now.Add(s.d.cfg.OutcomeLease * 11 / 10)
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

// The troubles that a session can be in.
const (
	troubleStore    = "the store cannot be read"
	troubleRetrieve = "the session cannot be retrieved"
	troubleClaim    = "calls cannot be claimed"
	troublePublish  = "calls cannot be published"
	troubleSave     = "results cannot be saved"
	troubleWithdraw = "calls cannot be taken back"
	troubleSubmit   = "results cannot be submitted"
	troubleMove     = "what was submitted cannot be recorded"
)

// fault logs a trouble once, when it begins.
func (s *session) fault(trouble string, err error) {
	if !s.troubles[trouble] {
		s.troubles[trouble] = true
		s.log.Warn("in trouble", "trouble", trouble, "error", err)
	}
}

// recovered logs the end of a trouble.
func (s *session) recovered(trouble string) {
	if s.troubles[trouble] {
		delete(s.troubles, trouble)
		s.log.Info("out of trouble", "trouble", trouble)
	}
}

// describe is what operators see of the session.
func (s *session) describe() SessionInfo {
	info := SessionInfo{
		ID: s.id, Partition: s.p.n, Watched: s.watched, Status: s.get.status,
		Retrieved: s.get.at, Trouble: strings.Join(slices.Sorted(maps.Keys(s.troubles)), "; "),
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

// setState keeps count of the parked calls.
func (s *session) setState(t *tracked, to call.State) {
	if t.state == call.Parked {
		s.d.parked.Add(-1)
	}
	if to == call.Parked {
		s.d.parked.Add(1)
	}
	t.state = to
}

// letGo ends the session's count of its parked calls: another owner counts them now.
func (s *session) letGo() {
	for _, t := range s.calls {
		s.setState(t, call.Absent)
	}
}

// enter notes a step in a call's life.
func (s *session) enter(t *tracked, to call.State, reason string, now time.Time) {
	from := t.state
	s.setState(t, to)
	age := now.Sub(t.claimed)
	s.d.obs.Transition(Transition{
		Key: t.Key, Function: t.Function, Registered: t.registered,
		From: from, To: to, Reason: reason, Age: age,
	})
	s.log.Debug("call moved", "turn_id", t.Turn, "call_id", t.Key.Call, "function", t.Function,
		"from", string(from), "to", string(to), "reason", reason, "attempt", t.attempt, "age", age)
}
