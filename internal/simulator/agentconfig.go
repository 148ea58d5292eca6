package simulator

import (
	"encoding/json"
)

// agentFields are the agent settings a request may carry, in agents, in agent of a creation and in agent of an update.
type agentFields struct {
	Model        *string         `json:"model"`
	Name         *string         `json:"name"`
	Instructions *string         `json:"instructions"`
	ServiceTier  json.RawMessage `json:"service_tier"`
	Tools        json.RawMessage `json:"tools"`
	Reasoning    json.RawMessage `json:"reasoning"`
	Text         json.RawMessage `json:"text"`
	MultiAgent   json.RawMessage `json:"multi_agent"`
	Compaction   json.RawMessage `json:"compaction"`
	Experimental json.RawMessage `json:"experimental"`
}

func (f *agentFields) empty() bool {
	return f.Model == nil && f.Name == nil && f.Instructions == nil && f.ServiceTier == nil && f.Tools == nil &&
		f.Reasoning == nil && f.Text == nil && f.MultiAgent == nil && f.Compaction == nil && f.Experimental == nil
}

// agentConfig is a resolved agent: stored, or the one of a session. It is a value: applying fields makes a new one.
type agentConfig struct {
	id           string
	name         string
	model        string
	instructions string
	serviceTier  string
	tools        toolList
	reasoning    reasoningConfig
	text         textConfig
	multiAgent   multiAgentConfig
	compaction   compactionConfig
	experimental experimentalConfig
}

type reasoningConfig struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type textConfig struct {
	Format    json.RawMessage `json:"format"`
	Verbosity string          `json:"verbosity"`
}

type multiAgentConfig struct {
	Enabled                bool   `json:"enabled"`
	MaxConcurrentSubagents *int64 `json:"max_concurrent_subagents"`
}

type compactionConfig struct {
	Async bool `json:"async"`
}

type experimentalConfig struct {
	TimeAwareness bool `json:"time_awareness"`
}

func newAgentConfig(id string) agentConfig {
	return agentConfig{
		id: id, serviceTier: "auto", reasoning: defaultReasoning(), text: defaultText(),
		compaction: compactionConfig{Async: true},
	}
}

func defaultReasoning() reasoningConfig {
	effort := "medium"
	return reasoningConfig{Effort: &effort}
}

func defaultText() textConfig {
	return textConfig{Format: json.RawMessage(`{"type":"text"}`), Verbosity: "medium"}
}

// apply returns a with the fields of f. Absent fields keep their value; null resets to the default.
func (a agentConfig) apply(f *agentFields) (agentConfig, error) {
	if f.Model != nil {
		a.model = *f.Model
	}
	if f.Name != nil {
		a.name = *f.Name
	}
	if f.Instructions != nil {
		a.instructions = *f.Instructions
	}
	if f.Tools != nil {
		tools, err := parseTools(f.Tools)
		if err != nil {
			return a, err
		}
		a.tools = tools
	}
	for _, field := range []struct {
		name   string
		raw    json.RawMessage
		into   any
		resets func()
	}{
		{"service_tier", f.ServiceTier, &a.serviceTier, func() { a.serviceTier = "auto" }},
		{"reasoning", f.Reasoning, &a.reasoning, func() { a.reasoning = defaultReasoning() }},
		{"text", f.Text, &a.text, func() { a.text = defaultText() }},
		{"multi_agent", f.MultiAgent, &a.multiAgent, func() { a.multiAgent = multiAgentConfig{} }},
		{"compaction", f.Compaction, &a.compaction, func() { a.compaction = compactionConfig{Async: true} }},
		{"experimental", f.Experimental, &a.experimental, func() { a.experimental = experimentalConfig{} }},
	} {
		if field.raw == nil {
			continue
		}
		if isNull(field.raw) {
			field.resets()
			continue
		}
		if err := json.Unmarshal(field.raw, field.into); err != nil {
			return a, invalidRequest("Invalid value for agent.%s.", field.name)
		}
	}
	return a, nil
}

// appendSettings appends the settings that stored agents and session agents share, from model on. Tools that the
// session object never lists are left out unless stored is set.
func (a *agentConfig) appendSettings(b []byte, stored bool) []byte {
	b = appendStringField(b, "model", a.model)
	b = appendKey(b, "instructions")
	b = appendStringOrNull(b, a.instructions)
	b = appendStringField(b, "service_tier", a.serviceTier)
	for _, field := range []struct {
		name  string
		value any
	}{
		{"reasoning", a.reasoning},
		{"text", a.text},
		{"multi_agent", a.multiAgent},
		{"compaction", a.compaction},
		{"experimental", a.experimental},
	} {
		raw, err := json.Marshal(field.value)
		if err != nil { // These values came from JSON and go back to it.
			raw = nil
		}
		b = appendRawField(b, field.name, raw)
	}
	b = append(appendKey(b, "tools"), '[')
	return append(a.tools.append(b, stored), ']')
}

// sessionJSON renders the agent of a session object.
func (a *agentConfig) sessionJSON() []byte {
	b := append([]byte(nil), `{"id":`...)
	b = appendString(b, a.id)
	b = appendKey(b, "name")
	b = appendStringOrNull(b, a.name)
	return append(a.appendSettings(b, false), '}')
}
