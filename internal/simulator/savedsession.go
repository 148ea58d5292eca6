package simulator

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// savedSession is a session in the state file. What may not be spelled anew is []byte, which JSON carries as base64.
type savedSession struct {
	ID            string            `json:"id"`
	CreatedAt     int64             `json:"created_at"`
	LastActive    int64             `json:"last_active_at"`
	Status        sessionStatus     `json:"status"`
	Agent         savedConfig       `json:"agent"`
	Environment   []byte            `json:"environment,omitempty"`
	Vaults        []string          `json:"vaults,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	MetadataSince time.Time         `json:"metadata_since"`
	PromptCache   []byte            `json:"prompt_cache,omitempty"`
	Review        string            `json:"review,omitempty"`
	SpendLimit    *int64            `json:"spend_limit,omitempty"`
	Initial       *savedInput       `json:"initial,omitempty"`
	Turns         []savedTurn       `json:"turns,omitempty"`
	Items         []savedItem       `json:"items,omitempty"`
	Queued        []savedInput      `json:"queued,omitempty"`
	Keys          []savedKey        `json:"keys,omitempty"`
}

// savedInput is a message that was accepted and has no turn yet.
type savedInput struct {
	Content []byte     `json:"content"`
	Text    string     `json:"text"`
	Plan    *savedPlan `json:"plan"`
}

// savedKey is an Idempotency-Key and the SHA-256 of what it carried.
type savedKey struct {
	Key string `json:"key"`
	Sum []byte `json:"sum"`
}

func saveInput(in userInput) savedInput { return savedInput{in.content, in.text, savePlan(in.plan)} }

func (in savedInput) restore() (userInput, error) {
	plan, err := in.Plan.restore()
	if err == nil && plan == nil {
		err = errors.New("an input has no plan")
	}
	return userInput{content: in.Content, text: in.Text, plan: plan}, err
}

// save copies the session. s.mu must be held; the copy shares only what is never edited.
func (s *session) save() savedSession {
	d := savedSession{
		ID: s.id, CreatedAt: s.createdAt, LastActive: s.lastActive, Status: s.status, Agent: saveConfig(s.agent),
		Environment: s.environment, Vaults: s.vaults, Metadata: s.metadata, MetadataSince: s.metadataSince,
		PromptCache: s.promptCache, Review: s.review, SpendLimit: s.spendLimit,
		Turns: each(s.turns, saveTurn), Items: s.saveItems(), Queued: each(s.queued, saveInput),
		Keys: each(s.keys.order, func(key string) savedKey {
			sum := s.keys.bodies[key]
			return savedKey{key, sum[:]}
		}),
	}
	if s.initial != nil {
		initial := saveInput(*s.initial)
		d.Initial = &initial
	}
	return d
}

func (s *Simulator) restoreSession(d savedSession) (*session, error) {
	ses := &session{
		sim: s, id: d.ID, createdAt: d.CreatedAt, lastActive: d.LastActive, status: d.Status,
		environment: d.Environment, vaults: d.Vaults, metadata: d.Metadata, metadataSince: d.MetadataSince,
		promptCache: d.PromptCache, review: d.Review, spendLimit: d.SpendLimit,
	}
	ses.setAgent(d.Agent.restore())
	for _, t := range d.Turns {
		if err := ses.restoreTurn(t); err != nil {
			return nil, fmt.Errorf("session %s: %w", d.ID, err)
		}
	}
	for _, it := range d.Items {
		if err := ses.restoreItem(it); err != nil {
			return nil, fmt.Errorf("session %s: %w", d.ID, err)
		}
	}
	for _, q := range d.Queued {
		input, err := q.restore()
		if err != nil {
			return nil, fmt.Errorf("session %s: %w", d.ID, err)
		}
		ses.queued = append(ses.queued, input)
	}
	if d.Initial != nil {
		input, err := d.Initial.restore()
		if err != nil {
			return nil, fmt.Errorf("session %s: %w", d.ID, err)
		}
		ses.initial = &input
	}
	for _, k := range d.Keys {
		if len(k.Sum) != sha256.Size {
			return nil, fmt.Errorf("session %s: an idempotency key has no SHA-256", d.ID)
		}
		ses.keys.put(k.Key, [sha256.Size]byte(k.Sum))
	}
	return ses, nil
}

// resume starts again what was waiting for its time when the state was saved.
func (s *session) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initial != nil {
		s.admitInitial()
		return
	}
	// Applying a result may end the turn and start the next, which schedules its own.
	t := s.current()
	var delayed []*delayedCall
	stepping := false
	if t != nil {
		delayed, stepping = slices.Clone(t.delayed), t.stepping
		t.stepping = false
	}
	for _, other := range s.turns {
		for _, c := range other.calls {
			if c.state == callAccepted {
				s.applyLater(c)
			}
		}
	}
	for _, d := range delayed {
		s.requireLater(t, d, time.Until(d.due))
	}
	if stepping {
		s.advance(t)
	}
}
