package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

// observed is what a rig has seen of its executor.
type observed struct {
	mu        sync.Mutex
	registry  *queue.Registry
	processes []*process
	outcomes  map[call.Key][]call.Delivered
	invalid   []call.Delivered
	questions map[call.Key]int
	standings map[call.Key]call.Standing
	// signals are what was published on the reply subjects of calls, by sequence.
	signals       map[uint64][]signal
	registrations []registration
	batches       []pull
}

// pull is a request for calls.
type pull struct {
	batch     int
	heartbeat time.Duration
	at        time.Time
}

// signal is an acknowledgement of any kind.
type signal struct {
	subject, body string
	at            time.Time
}

// registration is a request of an executor.
type registration struct {
	Protocol int    `json:"protocol"`
	Pool     string `json:"pool"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Verifies    bool            `json:"verifies"`
		Policy      call.Policy     `json:"policy"`
	} `json:"function"`
	Functions []string `json:"functions"`
	Executor  struct {
		ID       string `json:"id"`
		Language string `json:"language"`
	} `json:"executor"`

	at    time.Time
	token string
}

func newObserved() observed {
	return observed{
		outcomes: map[call.Key][]call.Delivered{}, questions: map[call.Key]int{},
		standings: map[call.Key]call.Standing{}, signals: map[uint64][]signal{},
	}
}

// observe listens, beside the server and the dispatcher, to what the executor publishes.
func (r *rig) observe(nc *nats.Conn) error {
	listen := func(subject string, f func(*nats.Msg)) error {
		_, err := nc.Subscribe(subject, func(m *nats.Msg) {
			r.mu.Lock()
			defer r.mu.Unlock()
			f(m)
		})
		return err
	}
	if err := listen("$JS.ACK.FN_CALLS.pool_"+pool+".>", r.signalled); err != nil {
		return err
	}
	if err := listen("$JS.API.CONSUMER.MSG.NEXT.FN_CALLS.pool_"+pool, r.pulled); err != nil {
		return err
	}
	if err := listen("fn.register.>", r.asked); err != nil {
		return err
	}
	return nc.FlushTimeout(patience)
}

func (r *rig) signalled(m *nats.Msg) {
	// $JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.…
	parts := strings.Split(m.Subject, ".")
	if len(parts) < 7 {
		return
	}
	sequence, err := strconv.ParseUint(parts[5], 10, 64)
	if err != nil {
		return
	}
	r.signals[sequence] = append(r.signals[sequence], signal{m.Subject, string(m.Data), time.Now()})
}

func (r *rig) pulled(m *nats.Msg) {
	var request struct {
		Batch     int           `json:"batch"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}
	if json.Unmarshal(m.Data, &request) != nil {
		request.Batch, _ = strconv.Atoi(strings.TrimSpace(string(m.Data))) // the old form
	}
	r.batches = append(r.batches, pull{max(request.Batch, 1), request.Heartbeat, time.Now()})
}

func (r *rig) asked(m *nats.Msg) {
	reg := registration{at: time.Now(), token: strings.TrimPrefix(m.Subject, "fn.register.")}
	if json.Unmarshal(m.Data, &reg) != nil {
		return
	}
	r.registrations = append(r.registrations, reg)
	if reg.Executor.Language != "" {
		r.play.mu.Lock()
		r.play.language = reg.Executor.Language
		r.play.mu.Unlock()
	}
}

// unregistered is a function that no process has registered since then, "" if there is none.
func (r *rig) unregistered(since time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.registry == nil {
		return "echo"
	}
	seen := map[string]bool{}
	for _, reg := range r.registrations {
		if !reg.at.Before(since) {
			seen[reg.Function.Name] = true
		}
	}
	for _, f := range functions {
		if f.level == LevelFull && !r.play.full {
			continue
		}
		if _, bound := r.registry.Function(f.name); !bound || !seen[f.name] {
			return f.name
		}
	}
	return ""
}

// answer is the suite's part in look-ups: calls are pending unless a check says otherwise.
func (r *rig) answer(_ context.Context, q call.Question) (call.Standing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.questions[q.Key]++
	standing, ok := r.standings[q.Key]
	switch {
	case !ok, standing == standsLater && r.questions[q.Key] > failedLookups:
		return call.StandingPending, nil
	case standing == standsLater && r.questions[q.Key] == 1:
		return "", errors.New("the store does not answer; ask again")
	case standing == standsLater:
		return "perhaps", nil
	default:
		return standing, nil
	}
}

// standsLater has the first look-ups give nothing of use, failedLookups of them.
const standsLater call.Standing = "later"

const failedLookups = 2

// stands decides how a call stands.
func (r *rig) stands(p *placed, s call.Standing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.standings[p.Key] = s
}

// lookups is how often an executor asked about the call.
func (r *rig) lookups(p *placed) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.questions[p.Key]
}

// collect takes an outcome. Repeated ones, which the id tells, count once.
func (r *rig) collect(d call.Delivered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.Invalid != nil {
		r.invalid = append(r.invalid, d)
		return
	}
	key := d.Outcome.Key
	for _, earlier := range r.outcomes[key] {
		if earlier.ID == d.ID && bytes.Equal(earlier.Body, d.Body) && d.Deliveries > 1 {
			return
		}
	}
	r.outcomes[key] = append(r.outcomes[key], d)
}

// reported are the outcomes of the call so far.
func (r *rig) reported(p *placed) []call.Delivered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]call.Delivered(nil), r.outcomes[p.Key]...)
}

// malformed is an outcome about the call that a dispatcher does not take.
func (r *rig) malformed(p *placed) *call.Delivered {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.invalid {
		if bytes.Contains(d.Body, []byte(p.Key.Call+`"`)) {
			return &d
		}
	}
	return nil
}

// sent are the signals of that kind about the call: +ACK, +WPI, -NAK, +TERM.
func (r *rig) sent(p *placed, kind string) []signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sent []signal
	for _, s := range r.signals[p.Sequence] {
		if strings.HasPrefix(s.body, kind) || kind == "+ACK" && s.body == "" {
			sent = append(sent, s)
		}
	}
	return sent
}

// largestPull is the largest batch that an executor asked for.
func (r *rig) largestPull() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	largest := 0
	for _, p := range r.batches {
		largest = max(largest, p.batch)
	}
	return largest
}

// rarestHeartbeat is the longest time between the heartbeats of a pull; 0 when one has none.
func (r *rig) rarestHeartbeat() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rarest time.Duration
	for _, p := range r.batches {
		if p.heartbeat <= 0 {
			return 0
		}
		rarest = max(rarest, p.heartbeat)
	}
	return rarest
}

// pulls says whether an executor asked for calls since then.
func (r *rig) pulls(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.batches, func(p pull) bool { return p.at.After(since) })
}

// registeredSince says whether a function was registered since then.
func (r *rig) registeredSince(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.registrations, func(reg registration) bool { return !reg.at.Before(since) })
}

// registeredAs are the requests about a function.
func (r *rig) registeredAs(name string) []registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []registration
	for _, reg := range r.registrations {
		if reg.Function.Name == name {
			found = append(found, reg)
		}
	}
	return found
}
