package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

// scripted is a model that answers by a function of the request. It is no API: it is for
// what the API and the simulator cannot be made to do at will.
type scripted struct {
	// play gives the items of the response; nil ones end it as failed.
	play func(n int, body request) reply
	// broken is asked before each event is handed on; an error cuts the stream there.
	broken func(ev runs.Event) error
	// forgets: responses cannot be retrieved.
	forgets bool

	mu        sync.Mutex
	bodies    []request
	responses map[string]reply
	cancelled []string
	keys      []string
	items     []json.RawMessage
}

// request is what the tests look at.
type request struct {
	raw      json.RawMessage
	Input    json.RawMessage `json:"input"`
	Previous string          `json:"previous_response_id"`
	Stream   bool            `json:"stream"`
	Backgr   bool            `json:"background"`
	Choice   json.RawMessage `json:"tool_choice"`
	Metadata map[string]string
}

type reply struct {
	status, reason string
	output         []json.RawMessage
	err            error
}

func completed(items ...string) reply {
	r := reply{status: "completed"}
	for _, i := range items {
		r.output = append(r.output, json.RawMessage(i))
	}
	return r
}

func fcall(id, name, arguments string, more ...string) string {
	return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","call_id":%q,"name":%q,"arguments":%s,"status":"completed"%s}`,
		id, id, name, strconv.Quote(arguments), strings.Join(more, ""))
}

func said(text string) string {
	return `{"id":"msg","type":"message","role":"assistant","content":[{"type":"output_text","text":` + strconv.Quote(text) + `}]}`
}

func (m *scripted) Create(ctx context.Context, body json.RawMessage, key string, on func(runs.Event) error) error {
	req := request{raw: slices.Clone(body)}
	if err := json.Unmarshal(body, &req); err != nil {
		return &call.Refusal{Class: call.RefusedInvalid, Err: err}
	}
	m.mu.Lock()
	m.bodies, m.keys = append(m.bodies, req), append(m.keys, key)
	n := len(m.bodies)
	m.mu.Unlock()
	r := m.play(n, req)
	if r.err != nil {
		return r.err
	}
	id := "resp_" + strconv.Itoa(n)
	m.mu.Lock()
	if m.responses == nil {
		m.responses = map[string]reply{}
	}
	m.responses[id] = r
	m.mu.Unlock()
	return m.stream(ctx, id, r, 0, on)
}

func (m *scripted) stream(ctx context.Context, id string, r reply, after int64, on func(runs.Event) error) error {
	events := []runs.Event{{Kind: runs.Created, Response: id, Status: "in_progress"}}
	for i, item := range r.output {
		events = append(events,
			runs.Event{Kind: runs.ItemAdded, Index: i, Item: item}, runs.Event{Kind: runs.ItemDone, Index: i, Item: item})
	}
	events = append(events, runs.Event{
		Kind: runs.Ended, Response: id, Status: r.status, Outcome: &runs.Outcome{Status: r.status, Reason: r.reason, Output: r.output},
	})
	for i, ev := range events {
		ev.Sequence = int64(i + 1)
		if ev.Sequence <= after {
			continue
		}
		if m.broken != nil {
			if err := m.broken(ev); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return &call.Refusal{Class: call.RefusedBusy, Err: err}
		}
		if err := on(ev); err != nil {
			return err
		}
	}
	return nil
}

func (m *scripted) Retrieve(ctx context.Context, id string, after int64, stream bool, on func(runs.Event) error) error {
	m.mu.Lock()
	r, ok := m.responses[id]
	m.mu.Unlock()
	if !ok || m.forgets {
		return &call.Refusal{Class: call.RefusedGone, Err: errors.New("no such response")}
	}
	if !stream {
		after = 0
	}
	return m.stream(ctx, id, r, after, on)
}

func (m *scripted) Cancel(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancelled = append(m.cancelled, id)
	return nil
}

func (m *scripted) Items(context.Context, string) ([]json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.items), nil
}

func (m *scripted) requests() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.bodies)
}

// hands stands for the dispatcher and its executors: it answers what the session lists.
type hands struct {
	engine func() *runs.Engine
	// answer gives the result of a call; nil leaves it alone.
	answer func(call.Call) *call.Result

	looking  sync.WaitGroup
	mu       sync.Mutex
	attached map[string]bool
	ran      map[call.Key]int
	results  map[call.Key]call.Result
}

func (h *hands) Attach(_ context.Context, ids ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attached == nil {
		h.attached, h.ran, h.results = map[string]bool{}, map[call.Key]int{}, map[call.Key]call.Result{}
	}
	for _, id := range ids {
		h.attached[id] = true
	}
	return nil
}

func (h *hands) Detach(_ context.Context, ids ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		delete(h.attached, id)
	}
	return nil
}

func (h *hands) Owns(int) bool { return true }

func (h *hands) Nudge(id, _ string) { h.looking.Go(func() { h.look(id) }) }

// look runs each listed call once, and answers it, as often as it is listed.
func (h *hands) look(id string) {
	ctx := context.Background()
	s, err := h.engine().Session(ctx, id)
	if err != nil {
		return
	}
	for _, c := range s.Calls {
		h.mu.Lock()
		if !h.attached[id] {
			h.mu.Unlock()
			return
		}
		result, known := h.results[c.Key]
		if !known {
			got := h.answer(c)
			if got == nil {
				h.mu.Unlock()
				continue
			}
			h.ran[c.Key]++
			result = *got
			h.results[c.Key] = result
		}
		h.mu.Unlock()
		_ = h.engine().Submit(ctx, call.Batch{Session: id, Answers: []call.Answer{{Key: c.Key, Result: result}}})
	}
}

func (h *hands) timesRun() map[call.Key]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.ran)
}

func sometimes(p float64) bool { return rand.Float64() < p } //nolint:gosec // a test
