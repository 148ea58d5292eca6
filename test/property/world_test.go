package property_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

const (
	partitions   = 2
	replicaCount = 2
	sessionCount = 2
	// settleTimeout bounds the wait for everything to be answered once the faults have stopped.
	settleTimeout = 40 * time.Second
)

// world is one run of a script.
type world struct {
	began     time.Time
	store     results.Store
	lose      func(context.Context) error
	api       *service
	queue     *broker
	pool      *pool
	functions *registry
	check     *checks
	replicas  [replicaCount]*replica
	starts    int
	turns     int
	lost      op
	// settleWithin bounds the wait for the end.
	settleWithin time.Duration
	keys         []call.Key

	mu       sync.Mutex
	alive    []*replica
	lines    []string
	stopping sync.WaitGroup
}

// newWorld is a world over a store of its own.
func newWorld(store opened) *world {
	w := &world{began: time.Now(), settleWithin: settleTimeout}
	w.check = &checks{w: w, lives: map[call.Key]*life{}}
	w.store, w.lose = recorder{store.Store, w.check}, store.lose
	w.api = &service{w: w, sessions: map[string]*apiSession{}}
	w.queue = newBroker(w)
	w.pool = newPool(w)
	w.functions = newRegistry()
	return w
}

func sessionID(n int) string { return fmt.Sprint("s", n) }

// run plays a script to its end and gives the broken rules.
func (w *world) run(s script) []string {
	for n := range sessionCount {
		w.api.sessions[sessionID(n)] = &apiSession{}
	}
	w.attach()
	for n := range w.replicas {
		w.start(n)
	}
	for _, st := range s {
		if st.after > 0 {
			<-time.After(st.after) // the script's clock
		}
		w.trace("--- %s", st)
		w.play(st)
	}
	w.trace("--- the faults stop")
	w.heal()
	stuck := w.settle()
	for n := range w.replicas {
		w.end(n)
	}
	w.stopping.Wait()
	w.queue.close()
	w.pool.stop()
	w.pool.wg.Wait()
	return append(w.check.found(), stuck...)
}

// attach has the sessions watched that exist.
func (w *world) attach() {
	for n := range sessionCount {
		if w.api.exists(sessionID(n)) {
			w.check.require(w.store.Attach(context.Background(), sessionID(n)))
		}
	}
}

// flush has the store lose everything. The sources attach the sessions again.
func (w *world) flush() {
	w.check.flushing.Lock()
	w.check.forget()
	w.check.require(w.lose(context.Background()))
	w.check.flushing.Unlock()
	w.attach()
}

func (w *world) play(st step) {
	session := sessionID(st.session)
	switch st.op {
	case opList:
		w.list(session, st.calls)
	case opKill:
		w.kill(st.replica)
	case opStop:
		w.end(st.replica)
	case opStart:
		w.start(st.replica)
	case opFreeze:
		if r := w.replicas[st.replica]; r != nil {
			r.gate.freeze(st.lasts)
		}
	case opCancel:
		w.api.cancel(session)
	case opDelete:
		w.api.delete(session)
	case opAPI:
		w.api.fail(st.fault)
	case opPublish:
		w.queue.failPublish(st.fault)
	case opOutcomes:
		w.queue.failOutcomes(st.fault)
	case opAway:
		w.queue.leave(st.lasts)
	case opDuplicate:
		w.queue.duplicate()
	case opRestart:
		if w.loses(opRestart) {
			w.queue.restart()
		}
	case opRegister:
		w.functions.complete()
	case opDecide:
		w.decide(st.fault)
	case opFlush:
		if w.loses(opFlush) {
			w.flush()
		}
	case opNothing:
	}
}

// loses says whether the memory that the step is about is lost: that of the store or of the
// queue, not both in one script. With a dispatcher that dies as well, nothing but an
// outcome that still waits in its lease knows then that a call has run, and a new owner
// takes the call for a new one.
func (w *world) loses(memory op) bool {
	if w.lost == "" {
		w.lost = memory
	}
	return w.lost == memory
}

// list has the API list the calls of a new turn.
func (w *world) list(session string, plans []plan) {
	w.turns++
	turn := fmt.Sprint("t", w.turns)
	var calls []call.Call
	for i, p := range plans {
		c := call.Call{Key: call.Key{Session: session, Turn: turn, Call: fmt.Sprint("c", i+1)}, Function: p.function, Arguments: []byte(`{}`)}
		w.pool.plan(c.Key, p)
		w.keys = append(w.keys, c.Key)
		calls = append(calls, c)
	}
	w.api.list(session, turn, calls)
}

// heal ends all faults but the fates of calls, of which each has a few.
func (w *world) heal() {
	w.api.heal()
	w.queue.heal()
	w.functions.complete()
	for n, r := range w.replicas {
		if r == nil {
			w.start(n)
		} else {
			r.gate.thaw()
		}
	}
}

// settle waits until every call is answered or cancelled, ended in the store, and gone
// from the queue. It says what is not by then.
func (w *world) settle() []string {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	timeout := time.After(w.settleWithin)
	for {
		left := w.unsettled()
		if len(left) == 0 {
			return nil
		}
		w.decide(runsAgain)
		select {
		case <-timeout:
			return left
		case <-poll.C:
		}
	}
}

func (w *world) unsettled() (left []string) {
	for _, key := range w.api.waiting() {
		left = append(left, short(key)+" is not answered")
	}
	if calls, outcomes := w.queue.left(); calls+outcomes > 0 {
		left = append(left, fmt.Sprintf("%d calls and %d outcomes are left in the queue", calls, outcomes))
	}
	if len(left) > 0 {
		return left
	}
	recs, err := w.store.Get(context.Background(), w.keys)
	if err != nil {
		return []string{"the store cannot be read: " + err.Error()}
	}
	for i, rec := range recs {
		if rec.State != call.Absent && !rec.State.Final() {
			left = append(left, fmt.Sprintf("%s is still %s", short(w.keys[i]), rec.State))
		}
	}
	return left
}

// trace notes what happens, for the account of a failure.
func (w *world) trace(format string, args ...any) {
	line := fmt.Sprintf("%8.3f  ", time.Since(w.began).Seconds()) + fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
}

// Write takes the log of the dispatchers.
func (w *world) Write(line []byte) (int, error) {
	w.trace("  log: %s", strings.TrimSpace(string(line)))
	return len(line), nil
}

func (w *world) account() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// running are the dispatchers that executors can ask.
func (w *world) running() []*replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.alive)
}

func (w *world) logger(name string) *slog.Logger {
	h := slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(h).With("dispatcher", name)
}

var _ dispatcher.Queue = gatedQueue{}
