package property_test

import "time"

// The faults of the model's queue.

func (b *broker) failPublish(f fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.publishFaults = append(b.publishFaults, f)
}

func (b *broker) failOutcomes(f fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcomeFaults = append(b.outcomeFaults, f)
}

// leave takes all executors away for a while.
func (b *broker) leave(lasts time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = true
	time.AfterFunc(lasts, b.comeBack)
}

func (b *broker) comeBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.away {
		return
	}
	b.away = false
	for sequence, m := range b.calls {
		if m.lease == nil {
			b.offer(sequence, m)
		}
	}
}

// duplicate delivers what is held once more, as if its lease had run out.
func (b *broker) duplicate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sequence, m := range b.calls {
		if m.lease != nil && m.lease.Stop() {
			m.lease = nil
			b.offer(sequence, m)
		}
	}
}

// restart is a server that is killed and comes back: it rebuilds what it knows of
// message ids from the messages that are stored.
func (b *broker) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, s := range b.ids {
		if b.calls[s.sequence] == nil {
			delete(b.ids, id)
		}
	}
	clear(b.reports)
	for _, r := range b.reported {
		b.reports[r.delivered.ID] = time.Now()
	}
}

func (b *broker) heal() {
	b.mu.Lock()
	b.publishFaults, b.outcomeFaults = nil, nil
	b.mu.Unlock()
	b.comeBack()
}

// left counts what is still stored.
func (b *broker) left() (calls, outcomes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls), len(b.reported)
}

// close ends all deliveries.
func (b *broker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, m := range b.calls {
		if m.lease != nil {
			m.lease.Stop()
		}
	}
}
