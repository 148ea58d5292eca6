//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/test/chaos/effects"
)

// operator decides about parked calls over the admin API of whichever dispatcher answers. It looks into the ledger
// first: what acted is answered with its output; what did not is barred, so that a frozen run does not act later, and
// then run again or given up.
type operator struct {
	// admins are the roots of the dispatchers' admin APIs.
	admins []string
	dir    string // of the effects
	rng    *rand.Rand
	log    *slog.Logger

	mu sync.Mutex
	// decided are the decisions by call and attempt. One that may have been lost is sent again as it was.
	decided map[string]*decided
	counts  map[string]int
}

// decided is one decision.
type decided struct {
	kind string
	body []byte
	sent time.Time
}

// parkedCall is what the admin API says of a parked call.
type parkedCall struct {
	call.Key
	Function string     `json:"function"`
	State    call.State `json:"state"`
	Attempt  int        `json:"attempt"`
}

const (
	// decideEvery is how often the operator looks for parked calls.
	decideEvery = 500 * time.Millisecond
	// decideAgain is after what time a decision that shows no consequence is sent again.
	decideAgain = 10 * time.Second
)

func newOperator(admins []string, effectsDir string, rng *rand.Rand, log *slog.Logger) *operator {
	return &operator{
		admins: admins, dir: effectsDir, rng: rng, log: log, decided: map[string]*decided{}, counts: map[string]int{},
	}
}

// run decides until ctx ends.
func (o *operator) run(ctx context.Context) {
	for sleep(ctx, decideEvery) {
		list, err := o.list(ctx)
		if err != nil {
			continue // all dispatchers are down or ill
		}
		for _, c := range list {
			if err := o.decide(ctx, c); err != nil && ctx.Err() == nil {
				o.log.Debug("no decision", "call", c.Key.String(), "error", err)
			}
		}
	}
}

// made counts the decisions by kind.
func (o *operator) made() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.counts)
}

// decide makes a decision and sends it, or sends the one that was made again.
func (o *operator) decide(ctx context.Context, c parkedCall) error {
	id := fmt.Sprintf("%s#%d", c.Key, c.Attempt)
	d := o.decided[id]
	if d == nil {
		if o.rng.IntN(3) == 0 {
			return nil // later
		}
		var err error
		if d, err = o.find(ctx, c); err != nil {
			return err
		}
		o.decided[id] = d
		o.mu.Lock()
		o.counts[d.kind]++
		o.mu.Unlock()
	}
	if time.Since(d.sent) < decideAgain {
		return nil
	}
	if _, err := o.ask(ctx, http.MethodPost, "/v1/calls/"+c.Key.String()+"/decision", d.body); err != nil {
		return err
	}
	d.sent = time.Now()
	return nil
}

// find looks whether the call acted.
func (o *operator) find(ctx context.Context, c parkedCall) (*decided, error) {
	looking, cancel := context.WithTimeout(ctx, 30*time.Second) // a frozen executor may hold the ledger for 20 s
	defer cancel()
	number, done, err := effects.Ledger{File: effects.File(o.dir, c.Function)}.Decide(looking, c.Key.String(), c.Attempt)
	switch {
	case err != nil:
		return nil, err
	case done:
		return &decided{kind: "done", body: fmt.Appendf(nil, `{"output":%q}`, "done "+number)}, nil
	case o.rng.IntN(4) == 0:
		return &decided{kind: "given_up", body: []byte(`{"error":"an operator found that it was not done"}`)}, nil
	default:
		return &decided{kind: "rerun", body: []byte(`{"rerun":true}`)}, nil
	}
}

// list asks for the parked calls.
func (o *operator) list(ctx context.Context) ([]parkedCall, error) {
	answer, err := o.ask(ctx, http.MethodGet, "/v1/calls?state="+string(call.Parked), nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Calls []parkedCall `json:"calls"`
	}
	return list.Calls, json.Unmarshal(answer, &list)
}

// ask asks one dispatcher after the other, until one answers.
func (o *operator) ask(ctx context.Context, method, path string, body []byte) (answer []byte, err error) {
	for _, n := range o.rng.Perm(len(o.admins)) {
		if answer, err = o.askOne(ctx, method, o.admins[n]+path, body); err == nil {
			return answer, nil
		}
	}
	return nil, err
}

func (o *operator) askOne(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second) // of a frozen one
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+adminToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, answer)
	}
	return answer, err
}
