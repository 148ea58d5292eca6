package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// The fakes below live in virtual time (testing/synctest), where no server can.

// memory is a results store without a server.
type memory struct {
	mu       sync.Mutex
	records  map[call.Key]*results.Record
	changed  map[call.Key]time.Time
	attached []string
	notes    map[call.Key][]string
	// slow is how long a claim takes.
	slow time.Duration
	// slowMoves is how long moves take.
	slowMoves time.Duration
}

func newMemory(sessions ...string) *memory {
	return &memory{
		records: map[call.Key]*results.Record{}, changed: map[call.Key]time.Time{}, notes: map[call.Key][]string{},
		attached: sessions,
	}
}

func (m *memory) view(r *results.Record) results.Record {
	out := *r
	out.Age = time.Since(r.ClaimedAt)
	out.Since = time.Since(m.changed[r.Key])
	return out
}

func (m *memory) Claim(_ context.Context, _ uint64, claims []results.Claim) ([]results.Record, error) {
	<-time.After(m.slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []results.Record
	for _, c := range claims {
		r := m.records[c.Key]
		if r == nil {
			r = &results.Record{Key: c.Key, Function: c.Function, State: c.State, ClaimedAt: time.Now()}
			m.changed[c.Key] = r.ClaimedAt
			m.records[c.Key] = r
		}
		out = append(out, m.view(r))
	}
	return out, nil
}

func (m *memory) Complete(_ context.Context, _ []uint64, completions []results.Completion) ([]results.Completed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []results.Completed
	for _, c := range completions {
		r := m.records[c.Key]
		switch {
		case r == nil && !c.Adopt:
			out = append(out, results.Completed{Verdict: results.Unknown})
			continue
		case r == nil:
			r = &results.Record{Key: c.Key, Function: c.Function, ClaimedAt: time.Now()}
			m.records[c.Key] = r
		}
		switch {
		case r.OutcomeID == c.OutcomeID:
			replayed := m.view(r)
			replayed.Result = nil // as the stores do: the caller has it
			out = append(out, results.Completed{Verdict: results.Saved, Record: replayed})
		case r.Result != nil || r.State.Final():
			out = append(out, results.Completed{Verdict: results.Superseded, Record: m.view(r)})
		default:
			result := c.Result
			r.Result, r.OutcomeID, r.State = &result, c.OutcomeID, call.Failed
			if result.Success {
				r.State = call.Succeeded
			}
			out = append(out, results.Completed{Verdict: results.Saved, Record: m.view(r)})
		}
	}
	return out, nil
}

func (m *memory) Move(_ context.Context, _ uint64, moves []results.Move) ([]results.Moved, error) {
	<-time.After(m.slowMoves)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []results.Moved
	for _, mv := range moves {
		r := m.records[mv.Key]
		if r == nil {
			out = append(out, results.Moved{})
			continue
		}
		done := r.State == mv.To || slices.Contains(mv.To.From(), r.State)
		if mv.Note != "" {
			m.notes[mv.Key] = append(m.notes[mv.Key], mv.Note)
		}
		if done {
			m.changed[mv.Key] = time.Now()
			r.State = mv.To
			if mv.Attempt != 0 {
				r.Attempt, r.Handover = mv.Attempt, mv.Handover
			}
		}
		out = append(out, results.Moved{Done: done, State: r.State})
	}
	return out, nil
}

func (m *memory) Get(_ context.Context, keys []call.Key) ([]results.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]results.Record, len(keys))
	for i, k := range keys {
		if r := m.records[k]; r != nil {
			out[i] = m.view(r)
		}
	}
	return out, nil
}

func (m *memory) Session(_ context.Context, session string) ([]results.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []results.Record
	for k, r := range m.records {
		if k.Session == session {
			out = append(out, m.view(r))
		}
	}
	return out, nil
}

func (m *memory) Unfinished(_ context.Context, each func(string) error) error {
	m.mu.Lock()
	sessions := map[string]bool{}
	for k, r := range m.records {
		if !r.State.Final() {
			sessions[k.Session] = true
		}
	}
	m.mu.Unlock()
	for session := range sessions {
		if err := each(session); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) state(k call.Key) call.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.records[k]; r != nil {
		return r.State
	}
	return call.Absent
}

// flush loses everything, as FLUSHALL does.
func (m *memory) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.records)
	clear(m.changed)
	m.attached = nil
}

func (m *memory) Attach(_ context.Context, ids ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attached = append(m.attached, ids...)
	return nil
}
func (m *memory) Detach(context.Context, ...string) error { return nil }
func (m *memory) Attached(context.Context, int, string) ([]string, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.attached == nil {
		return nil, results.NeverWritten, nil
	}
	return m.attached, "1", nil
}

func (m *memory) Join(_ context.Context, member string, _ time.Duration) ([]string, error) {
	return []string{member}, nil
}
func (m *memory) Leave(context.Context, string) error { return nil }
func (m *memory) Acquire(_ context.Context, _ string, partitions []int, ttl time.Duration) ([]results.Lease, error) {
	var out []results.Lease
	for _, p := range partitions {
		out = append(out, results.Lease{Partition: p, Fence: 1, Left: ttl})
	}
	return out, nil
}
func (m *memory) Release(context.Context, string, []int) error { return nil }
func (m *memory) Ping(context.Context) error                   { return nil }
func (m *memory) Close() error                                 { return nil }

// fakeAPI lists calls until they are answered.
type fakeAPI struct {
	mu      sync.Mutex
	calls   []call.Call
	gets    int
	batches []call.Batch
	gone    bool
	tools   string
	// lose makes accepted results vanish.
	lose func() bool
	// submit decides about a submission; nil accepts it and applies it.
	submit func(ctx context.Context, b call.Batch) error
}

func (a *fakeAPI) Session(_ context.Context, id string) (call.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gets++
	if a.gone {
		return call.Session{}, &call.Refusal{Class: call.RefusedGone, Status: 404, Err: errors.New("no such session")}
	}
	return call.Session{ID: id, Status: "requires_action", Calls: slices.Clone(a.calls), Tools: json.RawMessage(a.tools)}, nil
}

func (a *fakeAPI) Submit(ctx context.Context, b call.Batch) error {
	a.mu.Lock()
	a.batches = append(a.batches, b)
	submit := a.submit
	a.mu.Unlock()
	if submit != nil {
		if err := submit(ctx, b); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lose != nil && a.lose() {
		return nil
	}
	for _, answer := range b.Answers {
		a.calls = slices.DeleteFunc(a.calls, func(c call.Call) bool { return c.Key == answer.Key })
	}
	return nil
}

func (a *fakeAPI) seen() (gets int, batches []call.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gets, slices.Clone(a.batches)
}

// fakeQueue hands published calls to run, whose outcomes come back at once.
type fakeQueue struct {
	mu        sync.Mutex
	published []call.Dispatch
	outcomes  chan []call.Delivered
	// run makes the outcome of a dispatch; nil answers nothing.
	run func(call.Dispatch) (call.Outcome, bool)
	// slow is how long a publication takes.
	slow time.Duration
	// fail makes publications fail.
	fail error
	// hangs makes publications wait for the end of their time.
	hangs     bool
	acks      int
	cancelled []call.Key
	// taken says whether an executor has a hand-over; nil: nobody has any.
	taken     func(call.Dispatch) bool
	withdrawn []call.Dispatch
	// unsure makes withdrawals fail; asked counts them.
	unsure error
	asked  int
	// reported says whether an outcome lies in the queue; nil: none does.
	reported func(call.Dispatch) bool
	stored   map[call.Key]uint64
	buried   []call.DeadLetter
}

func newFakeQueue(run func(call.Dispatch) (call.Outcome, bool)) *fakeQueue {
	return &fakeQueue{run: run, outcomes: make(chan []call.Delivered, 1000)}
}

func (q *fakeQueue) Publish(ctx context.Context, ds []call.Dispatch) []error {
	<-time.After(q.slow)
	q.mu.Lock()
	hangs := q.hangs
	q.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return slices.Repeat([]error{ctx.Err()}, len(ds))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	errs := make([]error, len(ds))
	for i, d := range ds {
		if q.fail != nil {
			errs[i] = q.fail
			continue
		}
		q.published = append(q.published, d)
		ds[i].Sequence = uint64(len(q.published))
		if q.run == nil {
			continue
		}
		if o, ok := q.run(d); ok {
			o.Key, o.Nonce = d.Key, d.Nonce
			q.deliver(d, o)
		}
	}
	return errs
}

// deliver has an outcome arrive.
func (q *fakeQueue) deliver(d call.Dispatch, o call.Outcome) {
	q.outcomes <- []call.Delivered{{
		Outcome: o, Token: call.Token(d.Function), ID: o.MessageID(d.Handover), Deliveries: 1,
		Ack: func() { q.mu.Lock(); q.acks++; q.mu.Unlock() },
	}}
}

func (q *fakeQueue) Consume(ctx context.Context, _ int, handle func([]call.Delivered)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case batch := <-q.outcomes:
			handle(batch)
		}
	}
}

// Withdraw takes back what no run took; see taken.
func (q *fakeQueue) Withdraw(_ context.Context, d call.Dispatch) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unsure != nil {
		q.asked++
		return false, q.unsure
	}
	if q.taken != nil && q.taken(d) {
		return false, nil
	}
	q.withdrawn = append(q.withdrawn, d)
	return true, nil
}

// Stored is what the test says.
func (q *fakeQueue) Stored(_ context.Context, d call.Dispatch) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stored[d.Key], nil
}

// Reported says what the test says.
func (q *fakeQueue) Reported(_ context.Context, d call.Dispatch, _ func(call.Outcome) bool) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reported != nil && q.reported(d), nil
}

// Report has an outcome arrive, as an operator's decision does.
func (q *fakeQueue) Report(_ context.Context, d call.Dispatch, o call.Outcome) error {
	o.Key, o.Nonce = d.Key, d.Nonce
	q.deliver(d, o)
	return nil
}

func (q *fakeQueue) Cancel(_ context.Context, key call.Key, _, _ string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cancelled = append(q.cancelled, key)
	return nil
}

func (q *fakeQueue) Bury(_ context.Context, letter call.DeadLetter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.buried = append(q.buried, letter)
	return nil
}

func (q *fakeQueue) TooLarge(err error) bool { return errors.Is(err, errTooLarge) }
func (q *fakeQueue) Gone(err error) bool     { return errors.Is(err, errGone) }

var (
	errTooLarge = errors.New("too large")
	errGone     = errors.New("gone")
)

func (q *fakeQueue) acked() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.acks
}

func (q *fakeQueue) dispatches() []call.Dispatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.published)
}

// knows is a registry of functions that does not change.
type knows map[string]call.Function

func (k knows) Function(name string) (call.Function, bool) { f, ok := k[name]; return f, ok }
func (k knows) Changed() <-chan struct{}                   { return make(chan struct{}) }
