package demo

import (
	"sync"
	"time"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
)

// step is one step of one call, with the time since the demo began.
type step struct {
	dispatcher.Transition
	at time.Duration
}

// journal is a dispatcher.Observer that passes the steps of calls on to a view and
// counts where the calls are.
type journal struct {
	began time.Time
	show  func(step)

	mu     sync.Mutex
	states map[call.State]int
	// took are the times from the claim of a function's latest call to its result.
	took map[string]time.Duration
}

func newJournal(show func(step)) *journal {
	return &journal{began: time.Now(), show: show, states: map[call.State]int{}, took: map[string]time.Duration{}}
}

// Transition implements dispatcher.Observer.
func (j *journal) Transition(t dispatcher.Transition) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t.From != call.Absent {
		j.states[t.From]--
	}
	j.states[t.To]++
	if t.Registered && (t.To == call.Succeeded || t.To == call.Failed) {
		j.took[t.Function] = t.Age
	}
	if j.show != nil {
		j.show(step{t, time.Since(j.began)})
	}
}

// Request implements dispatcher.Observer.
func (j *journal) Request(string, string, time.Duration) {}

// Batch implements dispatcher.Observer.
func (j *journal) Batch(int, int) {}

// Count implements dispatcher.Observer.
func (j *journal) Count(string) {}

// Owned implements dispatcher.Observer.
func (j *journal) Owned(int, int) {}

// answerTime is how long it took from the claim of a function's call to its result.
func (j *journal) answerTime(function string) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.took[function]
}

// progress is how many calls were claimed, have a saved result, and are settled.
func (j *journal) progress() (claimed, saved, settled int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for s, n := range j.states {
		claimed += n
		if s.Saved() || s.Final() {
			saved += n
		}
		if s.Final() {
			settled += n
		}
	}
	return claimed, saved, settled
}
