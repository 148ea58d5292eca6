package queue

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// denials remembers what the server refused. A refused publish gets no answer;
// the reason comes apart from it, so whoever waits for the answer looks here.
type denials struct {
	any atomic.Bool

	mu      sync.Mutex
	last    map[string]time.Time
	changed chan struct{}
}

// maxDenials bounds the memory of a client that is refused everywhere.
const maxDenials = 4096

func newDenials() *denials {
	return &denials{last: map[string]time.Time{}, changed: make(chan struct{})}
}

func (d *denials) record(subject string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.last) >= maxDenials {
		clear(d.last)
	}
	d.last[subject] = time.Now()
	d.any.Store(true)
	close(d.changed)
	d.changed = make(chan struct{})
}

// since says whether subject was refused after start.
func (d *denials) since(subject string, start time.Time) bool {
	if !d.any.Load() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.last[subject]
	return ok && !at.Before(start)
}

// next is closed at the next refusal.
func (d *denials) next() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// parseViolation reads the server's "-ERR" text, nil when it is something else.
func parseViolation(text, user string) *PermissionError {
	m := violation.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	operation := "publish"
	if strings.EqualFold(m[1], "subscription") {
		operation = "subscribe"
	}
	return &PermissionError{Operation: operation, Subject: m[2], User: user}
}

// onDenial cancels the wait for an answer when the server refuses the subject it
// was asked on. The returned function ends the watch.
func (c *Conn) onDenial(subject string, start time.Time, cancel func(error)) (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			next := c.denied.next()
			if c.denied.since(subject, start) {
				cancel(&PermissionError{Operation: "publish", Subject: subject, User: c.cfg.User})
				return
			}
			select {
			case <-next:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
