package simulator

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
)

// Stats are counts since the simulator, or its state file, began; they survive the deletion of sessions.
type Stats struct {
	// Sessions counts creations.
	Sessions int64 `json:"sessions"`
	// Turns counts turns started; TurnsCompleted, TurnsFailed and TurnsCancelled how they ended.
	Turns          int64 `json:"turns"`
	TurnsCompleted int64 `json:"turns_completed"`
	TurnsFailed    int64 `json:"turns_failed"`
	TurnsCancelled int64 `json:"turns_cancelled"`
	// Calls counts distinct (session, turn, call id) that were required or emitted.
	Calls int64 `json:"calls"`
	// Pending counts the calls that wait for a result now.
	Pending int64 `json:"pending"`
	// ResultsAccepted counts distinct calls whose first result was accepted.
	ResultsAccepted int64 `json:"results_accepted"`
	// ResultsRefused counts POSTs of events answered with an error of the events themselves (400, 409), not by a
	// fault.
	ResultsRefused int64 `json:"results_refused"`
	// Conflicts counts those of them that were 409.
	Conflicts int64 `json:"conflicts"`
	// DuplicateSubmissions counts results, equal or not, for calls that already had an accepted one. Replays of a
	// whole POST under its Idempotency-Key are not among them: see IdempotentReplays.
	DuplicateSubmissions int64 `json:"duplicate_submissions"`
	// DuplicatesByCall counts them for each call that had any, keyed "session/turn/call".
	DuplicatesByCall map[string]int64 `json:"duplicates_by_call"`
	// IdempotentReplays counts POSTs answered from their Idempotency-Key.
	IdempotentReplays int64 `json:"idempotent_replays"`
	// Batches counts POSTs that carried at least one accepted result, BatchSizes how many had that many, and
	// MaxBatch is the largest.
	Batches    int64         `json:"batches"`
	BatchSizes map[int]int64 `json:"batch_sizes"`
	MaxBatch   int           `json:"max_batch"`
	// Streams counts event streams that were opened.
	Streams int64 `json:"streams"`
	// Responses counts the responses made; ResponsesByStatus how they ended. ResponseStreams counts their streams.
	Responses         int64            `json:"responses"`
	ResponsesByStatus map[string]int64 `json:"responses_by_status"`
	ResponseStreams   int64            `json:"response_streams"`
	// OutputsReceived counts the outputs of calls in all requests for responses; OutputsContradicted the calls for which
	// different ones came. See [Simulator.ReceivedOutputs].
	OutputsReceived     int64 `json:"outputs_received"`
	OutputsContradicted int64 `json:"outputs_contradicted"`
	// Requests counts API requests by endpoint.
	Requests map[Endpoint]int64 `json:"requests"`
	// FaultsFired counts the faults that happened, by kind.
	FaultsFired map[FaultKind]int64 `json:"faults_fired"`
	// WebhooksDelivered and WebhooksFailed count webhook events answered with 2xx and given up.
	WebhooksDelivered int64 `json:"webhooks_delivered"`
	WebhooksFailed    int64 `json:"webhooks_failed"`
}

// responseEnds are the ways a response ends.
var responseEnds = [...]responseStatus{responseCompleted, responseFailed, responseIncomplete, responseCancelled}

// counters are the live side of Stats.
type counters struct {
	sessions, turns, turnsCompleted, turnsFailed, turnsCancelled atomic.Int64
	calls, pending, resultsAccepted, resultsRefused, conflicts   atomic.Int64
	replays, streams, webhooksDelivered, webhooksFailed          atomic.Int64
	duplicates                                                   atomic.Int64
	responses, responseStreams                                   atomic.Int64
	responseEnds                                                 [len(responseEnds)]atomic.Int64
	requests                                                     [len(endpoints)]atomic.Int64

	mu      sync.Mutex
	batches map[int]int64
	repeats map[string]int64
}

// batch counts a POST with that many accepted results.
func (c *counters) batch(size int) {
	if size == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.batches == nil {
		c.batches = make(map[int]int64)
	}
	c.batches[size]++
}

func (c *counters) duplicate(sessionID string, call *call) {
	c.duplicates.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.repeats == nil {
		c.repeats = make(map[string]int64)
	}
	c.repeats[sessionID+"/"+call.turn.id+"/"+call.id]++
}

func (c *counters) refuse(err error) {
	c.resultsRefused.Add(1)
	if e := (*apiError)(nil); errors.As(err, &e) && e.status == http.StatusConflict {
		c.conflicts.Add(1)
	}
}

// Stats returns the counts so far.
func (s *Simulator) Stats() Stats {
	c := &s.stats
	st := Stats{
		Sessions: c.sessions.Load(), Turns: c.turns.Load(), TurnsCompleted: c.turnsCompleted.Load(),
		TurnsFailed: c.turnsFailed.Load(), TurnsCancelled: c.turnsCancelled.Load(),
		Calls: c.calls.Load(), Pending: c.pending.Load(), ResultsAccepted: c.resultsAccepted.Load(),
		ResultsRefused: c.resultsRefused.Load(), Conflicts: c.conflicts.Load(),
		DuplicateSubmissions: c.duplicates.Load(), IdempotentReplays: c.replays.Load(), Streams: c.streams.Load(),
		WebhooksDelivered: c.webhooksDelivered.Load(), WebhooksFailed: c.webhooksFailed.Load(),
		Responses: c.responses.Load(), ResponseStreams: c.responseStreams.Load(), ResponsesByStatus: make(map[string]int64),
		Requests: make(map[Endpoint]int64), FaultsFired: s.faults.counts(),
	}
	for i, status := range responseEnds {
		if n := c.responseEnds[i].Load(); n > 0 {
			st.ResponsesByStatus[string(status)] = n
		}
	}
	st.OutputsReceived, st.OutputsContradicted = s.responses.countOutputs()
	for i, endpoint := range endpoints {
		if n := c.requests[i].Load(); n > 0 {
			st.Requests[endpoint] = n
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st.BatchSizes = maps.Clone(c.batches)
	if st.BatchSizes == nil {
		st.BatchSizes = map[int]int64{}
	}
	st.DuplicatesByCall = maps.Clone(c.repeats)
	if st.DuplicatesByCall == nil {
		st.DuplicatesByCall = map[string]int64{}
	}
	for size, count := range st.BatchSizes {
		st.Batches += count
		st.MaxBatch = max(st.MaxBatch, size)
	}
	return st
}

func (s *Simulator) getStats(w http.ResponseWriter, _ *http.Request) error {
	body, err := json.Marshal(s.Stats())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}
