package executor

import (
	"time"

	"github.com/callfan/callfan/pkg/call"
)

const (
	// noticesFor is how long, at least, a cancel notice is remembered.
	noticesFor = 30 * time.Second
	// noticesMost bounds the memory: older notices go first.
	noticesMost = 10_000
)

// notices remembers cancel notices about calls that are not here. A notice may overtake
// its call on the way from the connection to the worker, most of all when both arrived
// while the process stood still. A notice that is remembered for too long does no harm:
// the call is looked up before it is run.
type notices struct {
	recent, older map[call.Key]struct{}
	since         time.Time // of recent
}

func (n *notices) note(k call.Key) {
	now := time.Now()
	if n.recent == nil || now.Sub(n.since) > noticesFor || len(n.recent) >= noticesMost {
		n.older, n.recent, n.since = n.recent, make(map[call.Key]struct{}), now
	}
	n.recent[k] = struct{}{}
}

func (n *notices) about(k call.Key) bool {
	_, recent := n.recent[k]
	_, older := n.older[k]
	return recent || older
}
