package simulator

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
)

type sessionStatus string

const (
	statusIdle           sessionStatus = "idle"
	statusInProgress     sessionStatus = "in_progress"
	statusRequiresAction sessionStatus = "requires_action"
)

// session is one agent session. Everything below mu is guarded by it; no I/O happens under it.
type session struct {
	sim       *Simulator
	seq       int64 // order of creation
	id        string
	createdAt int64
	// pinned sessions are fixtures: deletion answers 200 and leaves them.
	pinned bool
	side   *sideObjects
	gone   atomic.Bool // deleted

	mu            sync.Mutex
	status        sessionStatus
	lastActive    int64
	agent         agentConfig
	agentJSON     []byte
	environment   json.RawMessage
	vaults        []string
	metadata      map[string]string
	metadataSince time.Time
	promptCache   json.RawMessage
	review        string
	spendLimit    *int64

	// initial is the initial input until it is admitted.
	initial *userInput
	turns   []*turn
	items   []*item
	calls   map[callKey]*call
	listed  []*requirement // required_actions, in order
	queued  []userInput
	keys    keyMemory
	streams map[*stream]struct{}
}

type callKey struct{ turnID, callID string }

// userInput is one message: its content for the items, its text, and the plan the text asks for once it is accepted.
type userInput struct {
	content json.RawMessage
	text    string
	plan    planner
}

// append renders the session object. s.mu must be held.
func (s *session) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, s.id)
	b = append(b, `,"object":"agent.session"`...)
	b = appendIntField(b, "created_at", s.createdAt)
	b = appendIntField(b, "last_active_at", s.lastActive)
	b = appendStringField(b, "status", string(s.status))
	b = append(b, `,"error":null`...)
	b = appendRawField(b, "agent", s.agentJSON)
	b = appendRawField(b, "environment", s.environment)
	b = appendStringMap(appendKey(b, "metadata"), s.metadata)
	b = append(appendKey(b, "vault_ids"), '[')
	for i, id := range s.vaults {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, id)
	}
	b = append(b, `],"usage":null`...)
	b = appendRawField(b, "prompt_cache_options", s.promptCache)
	if s.review != "" && s.review != "none" {
		b = appendStringField(b, "review", s.review)
	}
	if s.spendLimit != nil {
		b = append(b, `,"spend_control":{"consumed":0`...)
		b = append(appendIntField(b, "limit", *s.spendLimit), '}')
	}
	b = append(appendKey(b, "required_actions"), '[')
	b = s.appendRequired(b)
	return append(b, ']', '}')
}

func (s *session) appendRequired(b []byte) []byte {
	for i, r := range s.listed {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function_call"`...)
		b = appendStringField(b, "turn_id", r.call.turn.id)
		b = appendStringField(b, "call_id", r.call.id)
		b = appendStringField(b, "name", r.name)
		b = append(s.appendArguments(b, r.arguments), '}')
	}
	if s.side != nil {
		b = s.side.appendRequired(b, len(s.listed) > 0)
	}
	return b
}

// appendArguments appends the arguments field as scripted: nil arguments are no field at all.
func (s *session) appendArguments(b []byte, arguments json.RawMessage) []byte {
	switch {
	case arguments == nil:
		return b
	case s.sim.sw.ArgumentsAsString:
		return appendStringField(b, "arguments", string(arguments))
	default:
		return append(appendKey(b, "arguments"), arguments...)
	}
}

// setAgent replaces the agent. s.mu must be held unless the session is not yet shared.
func (s *session) setAgent(agent agentConfig) {
	s.agent = agent
	s.agentJSON = agent.sessionJSON()
}

// deletable reports whether the session may be deleted. s.mu must be held.
func (s *session) deletable() bool {
	return s.status == statusIdle && len(s.listed) == 0 && s.initial == nil
}

// later runs f with s.mu held, in d, unless the simulator is closed or the session deleted by then. With a zero d it
// runs at once; the caller holds s.mu either way.
func (s *session) later(d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	s.sim.after(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.gone.Load() {
			f()
		}
	})
}
