package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
)

// stateVersion changes with the meaning of the state file.
const stateVersion = 1

// savedState is the content of the state file.
type savedState struct {
	Version  int            `json:"version"`
	Stats    Stats          `json:"stats"`
	Agents   []savedAgent   `json:"agents,omitempty"`
	Sessions []savedSession `json:"sessions,omitempty"`
	// Responses is the Responses API.
	Responses *savedResponses `json:"responses,omitempty"`
	// Deleted are the ids of sessions whose deletion may be asked for again.
	Deleted []string `json:"deleted,omitempty"`
}

// save copies everything, session by session: no lock is held for longer than one of them takes.
func (s *Simulator) save() savedState {
	state := savedState{
		Version: stateVersion, Stats: s.Stats(), Agents: each(s.agents.all(), saveAgent),
		Responses: s.saveResponses(), Deleted: s.sessions.deletedIDs(),
	}
	for ses := range s.sessions.walk(nil, false) {
		if ses.pinned { // fixtures are made anew
			continue
		}
		ses.mu.Lock()
		state.Sessions = append(state.Sessions, ses.save())
		ses.mu.Unlock()
	}
	return state
}

// restore takes the state over into a new simulator, in which nothing moves yet.
func (s *Simulator) restore(raw []byte) error {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	if head.Version != stateVersion {
		return fmt.Errorf("it has version %d, this program reads version %d", head.Version, stateVersion)
	}
	var state savedState
	if err := json.Unmarshal(raw, &state); err != nil {
		return err
	}
	for _, a := range state.Agents {
		s.agents.put(a.restore())
	}
	pending := int64(0)
	for _, d := range state.Sessions {
		ses, err := s.restoreSession(d)
		if err != nil {
			return err
		}
		s.sessions.add(ses)
		for _, c := range ses.calls {
			if c.waits() {
				pending++
			}
		}
	}
	s.sessions.markDeleted(state.Deleted)
	if err := s.restoreResponses(state.Responses); err != nil {
		return err
	}
	s.stats.restore(state.Stats, pending)
	s.faults.restoreCounts(state.Stats.FaultsFired)
	return nil
}

// restore continues the counts. Pending is counted anew, because the file's own count is not of the same instant as
// its sessions.
func (c *counters) restore(st Stats, pending int64) {
	c.sessions.Store(st.Sessions)
	c.turns.Store(st.Turns)
	c.turnsCompleted.Store(st.TurnsCompleted)
	c.turnsFailed.Store(st.TurnsFailed)
	c.turnsCancelled.Store(st.TurnsCancelled)
	c.calls.Store(st.Calls)
	c.pending.Store(pending)
	c.resultsAccepted.Store(st.ResultsAccepted)
	c.resultsRefused.Store(st.ResultsRefused)
	c.conflicts.Store(st.Conflicts)
	c.duplicates.Store(st.DuplicateSubmissions)
	c.replays.Store(st.IdempotentReplays)
	c.streams.Store(st.Streams)
	c.webhooksDelivered.Store(st.WebhooksDelivered)
	c.webhooksFailed.Store(st.WebhooksFailed)
	c.responses.Store(st.Responses)
	c.responseStreams.Store(st.ResponseStreams)
	for i, status := range responseEnds {
		c.responseEnds[i].Store(st.ResponsesByStatus[string(status)])
	}
	for i, endpoint := range endpoints {
		c.requests[i].Store(st.Requests[endpoint])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches, c.repeats = maps.Clone(st.BatchSizes), maps.Clone(st.DuplicatesByCall)
}

func (fs *faultSet) restoreCounts(fired map[FaultKind]int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.fired = maps.Clone(fired)
}
