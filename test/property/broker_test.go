package property_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

const (
	// callLease is how long the model's queue leaves a call with a silent executor.
	callLease       = 80 * time.Millisecond
	outcomeLease    = 150 * time.Millisecond
	duplicateWindow = 600 * time.Millisecond
	// outcomeWindow is shorter than a stall, so that late repetitions are stored again.
	outcomeWindow = 150 * time.Millisecond
)

var (
	errRefused = errors.New("the queue does not answer")
	errOver    = errors.New("the hand-over was published before and is over")
)

// broker is the model of the queue: two work queues with leases and redelivery, and
// windows in which a repeated message is recognised.
type broker struct {
	w *world

	mu       sync.Mutex
	closed   bool
	away     bool
	sequence uint64
	calls    map[uint64]*message
	ids      map[string]storedAs
	reported []*report
	reports  map[string]time.Time // message ids of outcomes
	arrived  chan struct{}        // closed when there is something new to consume
	buried   []call.DeadLetter

	publishFaults, outcomeFaults []fault
}

// storedAs is what the queue remembers of a message id.
type storedAs struct {
	sequence uint64
	at       time.Time
}

// message is a stored call.
type message struct {
	d          call.Dispatch
	deliveries int
	lease      *time.Timer // nil while nobody holds it
}

// report is a stored outcome.
type report struct {
	delivered call.Delivered
	partition int
	until     time.Time // of the lease
}

func newBroker(w *world) *broker {
	return &broker{
		w: w, calls: map[uint64]*message{}, ids: map[string]storedAs{},
		reports: map[string]time.Time{}, arrived: make(chan struct{}),
	}
}

// Publish stores hand-overs, as dispatcher.Queue declares.
func (b *broker) Publish(ctx context.Context, dispatches []call.Dispatch) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(dispatches))
	f := take(&b.publishFaults)
	for i := range dispatches {
		if f == refused || ctx.Err() != nil {
			errs[i] = errRefused
			continue
		}
		errs[i] = b.store(&dispatches[i])
		if f == unheard {
			errs[i] = errRefused
		}
	}
	return errs
}

func (b *broker) store(d *call.Dispatch) error {
	if old, ok := b.ids[d.MessageID()]; ok && time.Since(old.at) < duplicateWindow {
		d.Sequence = old.sequence
		if b.calls[old.sequence] == nil {
			b.w.trace("%s published again, and is over", name(*d))
			return errOver
		}
		return nil
	}
	b.sequence++
	d.Sequence = b.sequence
	b.ids[d.MessageID()] = storedAs{b.sequence, time.Now()}
	m := &message{d: *d}
	b.calls[b.sequence] = m
	b.w.trace("%s published, uncertain: %v", name(*d), d.Uncertain)
	b.offer(b.sequence, m)
	return nil
}

// offer hands a message that nobody holds to an executor.
func (b *broker) offer(sequence uint64, m *message) {
	if b.away || b.closed || b.calls[sequence] != m {
		return
	}
	m.deliveries++
	m.lease = time.AfterFunc(callLease, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		m.lease = nil
		b.offer(sequence, m)
	})
	b.w.pool.take(delivery{Dispatch: m.d, deliveries: m.deliveries, sequence: sequence})
}

// extend renews the lease, whoever holds it: acks are no fencing.
func (b *broker) extend(sequence uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.calls[sequence]; m != nil && m.lease != nil && m.lease.Stop() {
		m.lease.Reset(callLease)
	}
}

// ack removes a call.
func (b *broker) ack(sequence uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.calls[sequence]; m != nil {
		if m.lease != nil {
			m.lease.Stop()
		}
		delete(b.calls, sequence)
	}
}

// Withdraw takes back a call that no executor was given.
func (b *broker) Withdraw(_ context.Context, d call.Dispatch) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.calls[d.Sequence]
	if m == nil || m.deliveries > 0 {
		return false, nil
	}
	delete(b.calls, d.Sequence)
	return true, nil
}

// Stored is the number of a stored hand-over of the call.
func (b *broker) Stored(_ context.Context, d call.Dispatch) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sequence, m := range b.calls {
		if m.d.Key == d.Key {
			return sequence, nil
		}
	}
	return 0, nil
}

// Reported says whether an outcome of the call is stored.
func (b *broker) Reported(_ context.Context, d call.Dispatch, counts func(call.Outcome) bool) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.reported, func(r *report) bool {
		return r.delivered.Outcome.Key == d.Key && counts(r.delivered.Outcome)
	}), nil
}

// Report stores an outcome.
func (b *broker) Report(_ context.Context, d call.Dispatch, o call.Outcome) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	o.Key, o.Nonce = d.Key, d.Nonce
	id := o.MessageID(d.Handover)
	if at, ok := b.reports[id]; ok && time.Since(at) < outcomeWindow {
		return nil
	}
	b.reports[id] = time.Now()
	r := &report{partition: call.Partition(o.Session, partitions)}
	r.delivered = call.Delivered{Outcome: o, Token: call.Token(d.Function), ID: id}
	r.delivered.Ack = func() { b.forget(r) }
	b.reported = append(b.reported, r)
	b.w.trace("%s reported %s %s%s%s", name(d), o.Kind, o.Output, o.Error, o.Reason)
	b.announce()
	return nil
}

func (b *broker) forget(r *report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reported = slices.DeleteFunc(b.reported, func(other *report) bool { return other == r })
}

func (b *broker) announce() {
	close(b.arrived)
	b.arrived = make(chan struct{})
}

// Consume hands the outcomes of a partition out, again when their lease has run out.
func (b *broker) Consume(ctx context.Context, partition int, handle func([]call.Delivered)) error {
	for {
		batch, arrived, wait := b.due(partition)
		if len(batch) > 0 {
			handle(batch)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-arrived:
		case <-time.After(wait):
		}
	}
}

// due leases the outcomes of a partition that nobody holds.
func (b *broker) due(partition int) (batch []call.Delivered, arrived <-chan struct{}, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	wait = time.Second
	for _, r := range b.reported {
		switch {
		case r.partition != partition:
		case now.Before(r.until):
			wait = min(wait, r.until.Sub(now))
		default:
			r.until = now.Add(outcomeLease)
			wait = min(wait, outcomeLease)
			r.delivered.Deliveries++
			batch = append(batch, r.delivered)
		}
	}
	if len(batch) > 0 {
		switch take(&b.outcomeFaults) {
		case dropped:
			batch = nil
		case repeated:
			batch = append(batch, batch...)
		}
	}
	return batch, b.arrived, wait
}

// Cancel tells the executors to stop working on a call.
func (b *broker) Cancel(_ context.Context, key call.Key, _, reason string) error {
	b.w.trace("%s cancel notice: %s", short(key), reason)
	b.w.pool.cancel(key)
	return nil
}

// Bury keeps a letter.
func (b *broker) Bury(_ context.Context, letter call.DeadLetter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buried = append(b.buried, letter)
	return nil
}

// TooLarge says that nothing is too large.
func (b *broker) TooLarge(error) bool { return false }

// Gone recognises errOver.
func (b *broker) Gone(err error) bool { return errors.Is(err, errOver) }

func take(faults *[]fault) (f fault) {
	if len(*faults) > 0 {
		f, *faults = (*faults)[0], (*faults)[1:]
	}
	return f
}
