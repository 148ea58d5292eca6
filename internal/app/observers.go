package app

import (
	"time"

	"github.com/callfan/callfan/internal/dispatcher"
)

// observers are all who are told what the dispatcher does.
type observers []dispatcher.Observer

func (d *Dispatcher) observers() dispatcher.Observer {
	all := observers{d.metrics, joining{d}}
	if d.opts.Observer != nil {
		all = append(all, d.opts.Observer)
	}
	if d.opts.Dispatcher.Observer != nil {
		all = append(all, d.opts.Dispatcher.Observer)
	}
	return all
}

// Transition tells all.
func (o observers) Transition(t dispatcher.Transition) {
	for _, each := range o {
		each.Transition(t)
	}
}

// Request tells all.
func (o observers) Request(operation, class string, took time.Duration) {
	for _, each := range o {
		each.Request(operation, class, took)
	}
}

// Batch tells all.
func (o observers) Batch(answers, bytes int) {
	for _, each := range o {
		each.Batch(answers, bytes)
	}
}

// Count tells all.
func (o observers) Count(event string) {
	for _, each := range o {
		each.Count(event)
	}
}

// Owned tells all.
func (o observers) Owned(partitions, sessions int) {
	for _, each := range o {
		each.Owned(partitions, sessions)
	}
}

// counted reports each repair of the queue as an event of its kind's name.
func counted(observer dispatcher.Observer) func(kind string, n int) {
	return func(kind string, n int) {
		for range n {
			observer.Count(kind)
		}
	}
}

// joining notes the first renewal of the leases, for readiness.
type joining struct{ d *Dispatcher }

func (joining) Transition(dispatcher.Transition)      {}
func (joining) Request(string, string, time.Duration) {}
func (joining) Batch(int, int)                        {}
func (joining) Count(string)                          {}
func (j joining) Owned(int, int)                      { j.d.state.owned() }
