//go:build unix

package runcrash

import (
	"math/rand/v2"
	"sync"
	"time"
)

// point is an event in whose wake a dispatcher is killed.
type point string

const (
	// asked: a request for a response has arrived, and the API does not get it.
	asked point = "asked"
	// taken: the API makes the response, and the asker gets no byte of it.
	taken point = "taken"
	// begun: the asker has the first bytes of the answer, of a stream the response's id.
	begun point = "begun"
	// streaming: some more bytes have come.
	streaming point = "streaming"
	// answered: the asker has the whole answer.
	answered point = "answered"
	// outputs: like taken, of a request that carries outputs.
	outputs point = "outputs"
	// retrieved: an earlier response is being asked for.
	retrieved point = "retrieved"
	// running: an executor runs a call; ran: it is about to report what came of it.
	running point = "running"
	ran     point = "ran"
	// started: a run was asked for.
	started point = "started"
)

var points = []point{asked, taken, begun, streaming, streaming, answered, answered, outputs, retrieved, running, ran, started}

// trap kills a dispatcher, or does something else to it, at a point, once it is set.
type trap struct {
	mu     sync.Mutex
	set    bool
	at     point
	pass   int           // how often the point is let pass
	linger time.Duration // from the point to the deed
	act    func(replica string)
	fired  chan point
}

func newTrap() *trap { return &trap{fired: make(chan point, 1)} }

// arm sets the trap.
func (t *trap) arm(random *rand.Rand, act func(replica string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set, t.act, t.at, t.pass, t.linger = true, act, points[random.IntN(len(points))], random.IntN(4), 0
	if random.IntN(2) == 0 {
		t.linger = time.Duration(random.IntN(40)) * time.Millisecond
	}
}

// disarm takes the trap away; false when it has just fired.
func (t *trap) disarm() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.set
	t.set = false
	return was
}

// reach is called at each point. The replica is the one that it is about, empty when that is not known.
func (t *trap) reach(at point, replica string) {
	t.mu.Lock()
	hit := t.set && t.at == at
	if hit && t.pass > 0 {
		t.pass--
		hit = false
	}
	if hit {
		t.set = false
	}
	linger, act := t.linger, t.act
	t.mu.Unlock()
	if !hit {
		return
	}
	do := func() {
		act(replica)
		t.fired <- at
	}
	if linger > 0 {
		time.AfterFunc(linger, do)
		return
	}
	do()
}
