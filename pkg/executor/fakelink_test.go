package executor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// fakeQueue is a work queue with leases in memory, shared by the links of several
// executors. It is made for synctest bubbles.
type fakeQueue struct {
	mu       sync.Mutex
	changed  chan struct{}
	ackWait  time.Duration
	messages []*fakeMessage
	outcomes []call.Outcome
	pulls    []int
	cancels  []func(call.Key, string)

	registrations int
	closed        int
	reportErr     func(o call.Outcome) error
	lookup        func(call.Dispatch) (call.Standing, error)
	pullErr       func() error
	registerErr   error
}

type fakeMessage struct {
	d          call.Dispatch
	invalid    error
	deliveries int
	leased     time.Time // end of the lease
	acked      bool
	extended   int
}

func newFakeQueue(ackWait time.Duration) *fakeQueue {
	return &fakeQueue{
		ackWait: ackWait, changed: make(chan struct{}),
		lookup: func(call.Dispatch) (call.Standing, error) { return call.StandingPending, nil },
	}
}

func (q *fakeQueue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// dispatch makes the n-th call of a function.
func dispatch(function string, n int) call.Dispatch {
	return call.Dispatch{
		Call: call.Call{
			Key:      call.Key{Session: "sess_1", Turn: "turn_1", Call: fmt.Sprintf("call_%d", n)},
			Function: function, Arguments: []byte(`{}`),
		},
		Attempt: 1, Handover: 1, Nonce: fmt.Sprintf("1-%d", n), Timeout: 30 * time.Second, Deadline: time.Now().Add(90 * time.Second),
	}
}

func (q *fakeQueue) publish(ds ...call.Dispatch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range ds {
		q.messages = append(q.messages, &fakeMessage{d: d})
	}
	q.wake()
}

// add publishes a message in any condition.
func (q *fakeQueue) add(m *fakeMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, m)
	q.wake()
}

func (q *fakeQueue) cancel(k call.Key) {
	q.mu.Lock()
	notices := q.cancels
	q.mu.Unlock()
	for _, f := range notices {
		f(k, "turn cancelled")
	}
}

func (q *fakeQueue) reported() []call.Outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]call.Outcome(nil), q.outcomes...)
}

func (q *fakeQueue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, m := range q.messages {
		if !m.acked {
			n++
		}
	}
	return n
}

// pulled are the sizes of the pulls so far.
func (q *fakeQueue) pulled() []int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]int(nil), q.pulls...)
}

// first is the first message as it stands.
func (q *fakeQueue) first() fakeMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	return *q.messages[0]
}

// take leases up to n available messages; the channel and the time say when to look again.
func (q *fakeQueue) take(n int) ([]*fakeTaken, <-chan struct{}, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, next := time.Now(), time.Hour
	var got []*fakeTaken
	for _, m := range q.messages {
		switch {
		case m.acked:
		case m.leased.After(now):
			next = min(next, m.leased.Sub(now))
		case len(got) < n:
			m.deliveries++
			m.leased = now.Add(q.ackWait)
			got = append(got, &fakeTaken{q: q, m: m, d: m.d, deliveries: m.deliveries})
		}
	}
	return got, q.changed, next
}

type fakeLink struct{ *fakeQueue }

func (l fakeLink) Register(context.Context, []call.Function) (binding, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.registrations++
	return binding{puller: l, ackWait: l.ackWait, refresh: 30 * time.Second}, l.registerErr
}

func (l fakeLink) Pull(ctx context.Context, n int, each func(taken)) error {
	l.mu.Lock()
	l.pulls = append(l.pulls, n)
	pullErr := l.pullErr
	l.mu.Unlock()
	if pullErr != nil {
		if err := pullErr(); err != nil {
			return err
		}
	}
	expires := time.After(10 * time.Second)
	for n > 0 && ctx.Err() == nil {
		got, changed, next := l.take(n)
		for _, t := range got {
			each(t)
			n--
		}
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-expires:
			return nil
		case <-changed:
		case <-time.After(next):
		}
	}
	return ctx.Err()
}

func (l fakeLink) Report(_ context.Context, d call.Dispatch, o call.Outcome) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reportErr != nil {
		if err := l.reportErr(o); err != nil {
			return err
		}
	}
	if o.Key != d.Key || o.Nonce != d.Nonce {
		return fmt.Errorf("outcome %v %q does not answer %v %q", o.Key, o.Nonce, d.Key, d.Nonce)
	}
	l.outcomes = append(l.outcomes, o)
	return nil
}

func (l fakeLink) Lookup(_ context.Context, d call.Dispatch) (call.Standing, error) {
	return l.lookup(d)
}

func (l fakeLink) OnCancel(_ []call.Function, f func(call.Key, string)) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancels = append(l.cancels, f)
	return func() {}, nil
}

func (l fakeLink) Ready(context.Context) error { return nil }

func (l fakeLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed++
	return nil
}

type fakeTaken struct {
	q          *fakeQueue
	m          *fakeMessage
	d          call.Dispatch
	deliveries int
	transit    time.Duration
}

func (t *fakeTaken) Transit() time.Duration  { return t.transit }
func (t *fakeTaken) Dispatch() call.Dispatch { return t.d }
func (t *fakeTaken) Deliveries() int         { return t.deliveries }
func (t *fakeTaken) Invalid() error          { return t.m.invalid }

func (t *fakeTaken) InProgress() error {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	t.m.leased = time.Now().Add(t.q.ackWait)
	t.m.extended++
	return nil
}

func (t *fakeTaken) Ack() error {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	t.m.acked = true
	return nil
}

func (t *fakeTaken) Term(string) error { return t.Ack() }
