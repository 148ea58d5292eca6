package simulator

import (
	"bytes"
	"encoding/json"
	"time"
)

// prepareFixtures makes the objects that openai-go's own tests address. Those tests delete what others read later, so
// fixtures survive their deletion; and they start every list after the cursor "after", which parsePage knows.
func (s *Simulator) prepareFixtures() {
	now := unixNow()
	config := newAgentConfig("agent_id")
	config.model = "model"
	config.name = "fixture"
	s.agents.put(storedAgent{config: config, createdAt: now, updated: now})

	ses := &session{
		sim: s, id: "session_id", pinned: true, createdAt: now, lastActive: now, status: statusIdle,
		environment: json.RawMessage(`{"type":"none"}`), metadata: map[string]string{"foo": "string"},
		metadataSince: time.Now(),
	}
	ses.setAgent(config)
	finished := func(subagentID string) (*turn, *item) {
		t := &turn{
			session: ses, id: "turn_id", subagentID: subagentID, status: turnCompleted,
			createdAt: now, startedAt: now, completedAt: now,
		}
		return t, &item{id: "item_id", kind: itemAssistantMessage, status: itemCompleted, turn: t, text: "fixture"}
	}
	t, it := finished("")
	ses.turns, ses.items = []*turn{t}, []*item{it}
	st, sit := finished("subagent_id")
	ses.side = &sideObjects{
		subagents: []*subagent{{id: "subagent_id", session: ses, turns: []*turn{st}, items: []*item{sit}}},
		artifacts: []artifact{{
			id: "artifact_id", sessionID: ses.id, turnID: t.id, environmentID: "environment_id", content: "abc",
		}},
		approvals: []string{"request_id"},
	}
	s.sessions.add(ses)
	s.prepareResponseFixtures()
}

// prepareResponseFixtures makes the responses and conversations that openai-go's own tests address.
func (s *Simulator) prepareResponseFixtures() {
	said := func(id string) *responseItem {
		it := newMessageItem("user", []byte(`[{"type":"input_text","text":"fixture"}]`), "fixture")
		it.raw, it.id = bytes.Replace(it.raw, []byte(it.id), []byte(id), 1), id
		return it
	}
	req := responseRequest{fields: map[string]json.RawMessage{"model": json.RawMessage(`"model"`)}}
	for _, id := range []string{"resp_677efb5139a88190b512bc3fef8e535d", "response_id"} {
		s.responses.add(&response{
			sim: s, id: id, created: time.Now(), completed: time.Now(), background: true, stored: true, pinned: true,
			echo: req.appendEcho(nil), input: []*responseItem{said("msg_" + id)}, generation: &generation{},
			status: responseCompleted, changed: make(chan struct{}),
		})
	}
	for _, id := range []string{"conv_123", "string"} {
		s.putConversation(&conversation{id: id, createdAt: unixNow(), items: []*responseItem{said("msg_abc")}, pinned: true})
	}
}
