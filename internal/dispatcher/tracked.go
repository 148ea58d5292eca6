package dispatcher

import (
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
)

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
	// unproven: an earlier owner may have handed it over, and the store lost the record.
	unproven bool
	// missing is when a GET first failed to show it.
	missing time.Time
	// busy: the store is being asked about it.
	busy bool
	// releases are the acks of outcomes that gave the call back, due when the next
	// hand-over is on record.
	releases []func()

	// registered and policy are those of the function at the last look; verifies says that
	// its executors verify what may have run.
	registered bool
	policy     call.Policy
	verifies   bool
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
	// askAgain is when to ask the queue next whether it was taken, after an error.
	askAgain time.Time
	// over tells a publication under way that the call is not to be handed over any more.
	over chan struct{}
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
	// acks are those of the messages that are kept until the call has ended, by message
	// id: they say what became of it should the store forget (ADR 0015, ADR 0017).
	acks map[string]func()

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

// keep leaves an outcome in the queue until the call has ended. It comes again now and
// then; the latest delivery is the one to ack.
func (t *tracked) keep(dv call.Delivered) {
	if t.acks == nil {
		t.acks = map[string]func(){}
	}
	t.acks[dv.ID] = dv.Ack
}

// kept gives the acks of what was kept.
func (t *tracked) kept() []func() {
	acks := slices.Collect(maps.Values(t.acks))
	t.acks = nil
	return acks
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
	if t.over != nil && !to.Open() {
		close(t.over)
		t.over = nil
	}
}

// letGo ends the session's count of its parked calls: another owner counts them now.
func (s *session) letGo() {
	for _, t := range s.calls {
		s.setState(t, call.Absent)
	}
}

// free ends the wait for an answer about the call. A result may have come meanwhile,
// which was not sent for as long.
func (s *session) free(t *tracked) {
	t.busy = false
	s.wantSubmit(time.Now())
}

// reach takes over a state that the store shows. A step that leads there is reported;
// several steps of another owner, of which only the last is seen, are not.
func (s *session) reach(t *tracked, to call.State, reason string, now time.Time) {
	if t.state != to && slices.Contains(to.From(), t.state) {
		s.enter(t, to, reason, now)
	}
	s.setState(t, to)
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
